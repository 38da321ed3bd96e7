// SPDX-License-Identifier: MIT
// How far apart colours look: CIEDE2000 between them as most people see them, and as people do who
// lack one kind of cone (Machado, Oliveira and Fernandes 2009, severity 1).

const CONES = {
  all: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protan: [
    0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998,
  ],
  deutan: [
    0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881,
  ],
  tritan: [
    1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039,
  ],
};

export const SIGHTS = Object.keys(CONES);

/** Red, green and blue of "#rrggbb", linear. */
export function linearOf(colour) {
  return [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
}

const times = (m, [r, g, b]) =>
  [0, 3, 6].map((row) => m[row] * r + m[row + 1] * g + m[row + 2] * b);

export function labOf(linear, sight) {
  const [r, g, b] = times(CONES[sight], linear).map((part) => Math.max(0, Math.min(1, part)));
  const f = (value) => (value > 0.008856 ? Math.cbrt(value) : 7.787 * value + 16 / 116);
  const x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
  const y = f(0.2126729 * r + 0.7151522 * g + 0.072175 * b);
  const z = f((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** CIEDE2000 of two colours in Lab. */
export function distance([l1, a, b1], [l2, c, b2]) {
  const mean7 = ((Math.hypot(a, b1) + Math.hypot(c, b2)) / 2) ** 7;
  const more = 1 + 0.5 * (1 - Math.sqrt(mean7 / (mean7 + 25 ** 7)));
  const [a1, a2] = [a * more, c * more];
  const [c1, c2] = [Math.hypot(a1, b1), Math.hypot(a2, b2)];
  const rad = Math.PI / 180;
  const hue = (x, y) => (Math.atan2(y, x) / rad + 360) % 360;
  const [h1, h2] = [hue(a1, b1), hue(a2, b2)];
  const isGrey = c1 * c2 === 0;
  let dh = isGrey ? 0 : h2 - h1;
  if (dh > 180) dh -= 360;
  else if (dh < -180) dh += 360;
  const dH = 2 * Math.sqrt(c1 * c2) * Math.sin((dh * rad) / 2);
  const l = (l1 + l2) / 2;
  const chroma = (c1 + c2) / 2;
  const sum = h1 + h2;
  let h = sum / 2;
  if (isGrey) h = sum;
  else if (Math.abs(h1 - h2) > 180) h = sum < 360 ? (sum + 360) / 2 : (sum - 360) / 2;
  const cos = (degrees) => Math.cos(degrees * rad);
  const t =
    1 - 0.17 * cos(h - 30) + 0.24 * cos(2 * h) + 0.32 * cos(3 * h + 6) - 0.2 * cos(4 * h - 63);
  const sl = 1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2);
  const sc = 1 + 0.045 * chroma;
  const sh = 1 + 0.015 * chroma * t;
  const turn =
    -Math.sin(60 * Math.exp(-(((h - 275) / 25) ** 2)) * rad) *
    2 *
    Math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7));
  const [dl, dc, dhue] = [(l2 - l1) / sl, (c2 - c1) / sc, dH / sh];
  return Math.sqrt(dl ** 2 + dc ** 2 + dhue ** 2 + turn * dc * dhue);
}

/** WCAG's contrast of two colours. */
export function contrast(one, other) {
  const light = (colour) => {
    const [r, g, b] = linearOf(colour);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
  return high / low;
}

/** The closest pair of colours for people who see so. */
export function closest(colours, sight) {
  const labs = colours.map((colour) => labOf(linearOf(colour), sight));
  let least = { away: Infinity, pair: [] };
  for (let i = 0; i < labs.length; i++)
    for (let k = 0; k < i; k++) {
      const away = distance(labs[i], labs[k]);
      if (away < least.away) least = { away, pair: [colours[k], colours[i]] };
    }
  return least;
}
