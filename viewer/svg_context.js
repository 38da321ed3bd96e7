// SPDX-License-Identifier: MIT
// A drawing context that writes SVG: what the views draw on a canvas, as shapes and text. What they
// paint pixel by pixel becomes a picture inside.

const STYLES = ['fillStyle', 'strokeStyle', 'lineWidth', 'font', 'globalAlpha', 'textAlign'];
const ANCHORS = /** @type {Record<string, string>} */ ({
  left: 'start',
  center: 'middle',
  right: 'end',
});

/** @param {string} text */
function escaped(text) {
  return text
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;');
}

/** @param {number} number */
function short(number) {
  return String(Math.round(number * 100) / 100);
}

/** "italic 600 12px family" as attributes: the page's policy allows no styles inside of elements.
 * @param {string} font */
function fontOf(font) {
  const [before, family] = font.split(/\d+px /);
  const size = /(\d+)px/.exec(font)?.[1] ?? '12';
  const slant = /italic/.test(before) ? ' font-style="italic"' : '';
  const weight = /600/.test(before) ? ' font-weight="600"' : '';
  return `font-size="${size}" font-family="${escaped(family ?? 'sans-serif')}"${slant}${weight}`;
}

/** @param {CanvasImageSource} image @param {number} width @param {number} height */
function dataOf(image, width, height) {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')).drawImage(image, 0, 0);
  return canvas.toDataURL('image/png');
}

/** The name of SVG, from the browser: a page has no address of another place in it, not even one
 * that is only a name. */
function svgNamespace() {
  const template = document.createElement('template');
  template.innerHTML = '<svg></svg>';
  return /** @type {Element} */ (template.content.firstChild).namespaceURI;
}

/** Takes the place of a canvas and of its context. */
export class SvgContext {
  /** @param {number} width @param {number} height of the page, in CSS pixels
   * @param {string} [name] that no other picture of the file has */
  constructor(width, height, name = '') {
    this.name = name;
    this.shown = { width, height };
    this.width = 0; // of a canvas, in its own pixels
    this.height = 0;
    this.ratio = 1;
    /** @type {string[]} */
    this.parts = [];
    /** @type {string[]} */
    this.path = [];
    /** @type {any[]} */
    this.kept = [];
    this.clips = 0;
    this.groups = 0; // open ones
    this.dash = '';
    this.fillStyle = '#000000';
    this.strokeStyle = '#000000';
    this.lineWidth = 1;
    this.font = '';
    this.globalAlpha = 1;
    this.textAlign = 'left';
    this.textBaseline = 'middle';
    this.imageSmoothingEnabled = true;
    this.measure = /** @type {CanvasRenderingContext2D} */ (
      document.createElement('canvas').getContext('2d')
    );
  }

  getContext() {
    return this;
  }

  /** @param {number} ratio */
  setTransform(ratio) {
    this.ratio = ratio;
  }

  /** @param {string} text */
  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }

  save() {
    const styles = STYLES.map((name) => /** @type {any} */ (this)[name]);
    this.kept.push({ styles, groups: this.groups, dash: this.dash });
  }

  restore() {
    const { styles, groups, dash } = this.kept.pop();
    STYLES.forEach((name, i) => {
      /** @type {any} */ (this)[name] = styles[i];
    });
    this.dash = dash;
    for (; this.groups > groups; this.groups--) this.parts.push('</g>');
  }

  /** @param {string} attributes */
  open(attributes) {
    this.parts.push(`<g ${attributes}>`);
    this.groups++;
  }

  /** @param {number} x @param {number} y */
  translate(x, y) {
    this.open(`transform="translate(${short(x)} ${short(y)})"`);
  }

  clip() {
    const id = `clip${this.name}${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><path d="${this.path.join('')}"/></clipPath>`);
    this.open(`clip-path="url(#${id})"`);
  }

  /** @param {string} style @param {string} name */
  paint(style, name) {
    const alpha = /^rgba\((.*),([\d.]+)\)$/.exec(style);
    const colour = alpha ? `rgb(${alpha[1]})` : style;
    const opacity = this.globalAlpha * (alpha ? Number(alpha[2]) : 1);
    return `${name}="${colour}"${opacity < 1 ? ` ${name}-opacity="${short(opacity)}"` : ''}`;
  }

  strokeOf() {
    const dash = this.dash ? ` stroke-dasharray="${this.dash}"` : '';
    const colour = this.paint(this.strokeStyle, 'stroke');
    return `fill="none" ${colour} stroke-width="${this.lineWidth}"${dash}`;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  box(x, y, width, height) {
    const size = `width="${short(width)}" height="${short(height)}"`;
    return `<rect x="${short(x)}" y="${short(y)}" ${size}`;
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  fillRect(x, y, width, height) {
    if (width > 0 && height > 0)
      this.parts.push(`${this.box(x, y, width, height)} ${this.paint(this.fillStyle, 'fill')}/>`);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  strokeRect(x, y, width, height) {
    this.parts.push(`${this.box(x, y, width, height)} ${this.strokeOf()}/>`);
  }

  /** @param {string} text @param {number} x @param {number} y */
  fillText(text, x, y) {
    const style = fontOf(this.font);
    const anchor = ANCHORS[this.textAlign];
    this.parts.push(
      `<text x="${short(x)}" y="${short(y)}" dy="0.35em" text-anchor="${anchor}" ${style} ` +
        `${this.paint(this.fillStyle, 'fill')}>${escaped(text)}</text>`,
    );
  }

  beginPath() {
    this.path = [];
  }

  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.path.push(`M${short(x)} ${short(y)}`);
  }

  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.path.push(`L${short(x)} ${short(y)}`);
  }

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  rect(x, y, width, height) {
    this.path.push(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`);
  }

  /** A whole circle: the views draw no other arcs. @param {number} x @param {number} y
   * @param {number} radius */
  arc(x, y, radius) {
    const r = short(radius);
    const d = short(2 * radius);
    this.path.push(
      `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${d} 0a${r} ${r} 0 1 0 -${d} 0z`,
    );
  }

  fill() {
    this.parts.push(`<path d="${this.path.join('')}" ${this.paint(this.fillStyle, 'fill')}/>`);
  }

  stroke() {
    this.parts.push(`<path d="${this.path.join('')}" ${this.strokeOf()}/>`);
  }

  /** @param {number[]} dash */
  setLineDash(dash) {
    this.dash = dash.join(' ');
  }

  /** @param {string} data @param {number} x @param {number} y @param {number} width
   * @param {number} height */
  image(data, x, y, width, height) {
    this.parts.push(
      `<image href="${data}" x="${short(x)}" y="${short(y)}" width="${short(width)}" ` +
        `height="${short(height)}" preserveAspectRatio="none" image-rendering="pixelated"/>`,
    );
  }

  /** @param {ImageData} pixels @param {number} x @param {number} y in pixels of the canvas */
  putImageData(pixels, x, y) {
    const { width, height } = pixels;
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')).putImageData(pixels, 0, 0);
    const { ratio } = this;
    this.image(
      dataOf(canvas, width, height),
      x / ratio,
      y / ratio,
      width / ratio,
      height / ratio,
    );
  }

  /** @param {HTMLCanvasElement} canvas @param {number} x @param {number} y @param {number} width
   * @param {number} height */
  drawImage(canvas, x, y, width, height) {
    this.image(dataOf(canvas, canvas.width, canvas.height), x, y, width, height);
  }

  /** Puts another picture into this one. @param {SvgContext} other @param {number} x */
  nest(other, x) {
    this.parts.push(other.text().replace('<svg ', `<svg x="${short(x)}" `));
  }

  /** The whole picture as a file. */
  text() {
    const { width, height } = this.shown;
    const open = '</g>'.repeat(this.groups);
    return (
      `<svg xmlns="${svgNamespace()}" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}">${this.parts.join('')}${open}</svg>\n`
    );
  }
}
