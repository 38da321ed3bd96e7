// SPDX-License-Identifier: MIT
// Pictures that the program makes pixel by pixel. A canvas takes many times as long for thousands
// of small rectangles: it keeps each of them, and draws them all when the frame is put together.

const RIM = 0.72; // how dark the upper and left edges of a large rectangle are

/** A pixel: red in the lowest byte, opaque. Machines that browsers run on are little endian.
 * @param {number} red @param {number} green @param {number} blue */
export function pixelOf(red, green, blue) {
  return 0xff000000 | ((blue + 0.5) << 16) | ((green + 0.5) << 8) | (red + 0.5);
}

/** Pixels as numbers, and as what a canvas takes. */
export class Pixels {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.image = new ImageData(width, height);
    this.numbers = new Uint32Array(this.image.data.buffer);
  }

  /** The old ones when they fit. @param {Pixels | null} old @param {number} width
   * @param {number} height */
  static of(old, width, height) {
    return old && old.width === width && old.height === height ? old : new Pixels(width, height);
  }
}

/** A colour over another. @param {number[]} below @param {number[]} above
 * @param {number} share of the one above */
export function mixed(below, above, share) {
  return below.map((byte, i) => byte * (1 - share) + above[i] * share);
}

/** "rgba(r,g,b,a)" as a colour and its share. @param {string} text
 * @returns {[number[], number]} */
export function shareOfColour(text) {
  const numbers = (text.match(/[\d.]+/g) || []).map(Number);
  return [numbers.slice(0, 3), numbers[3]];
}

/** Fills columns of pixels from the foot up with colours one above another. Where several meet in
 * one pixel each gets its share of it, so nothing is lost that is less high than a pixel. */
export class Stacker {
  /** @param {Pixels} pixels @param {number[][]} colours @param {Uint32Array} ground by row from the
   * top: what is seen where nothing is stacked */
  constructor(pixels, colours, ground) {
    this.pixels = pixels;
    this.ground = ground;
    this.colours = Float64Array.from(colours.flat());
    this.solid = Uint32Array.from(colours, ([r, g, b]) => pixelOf(r, g, b));
    this.column = 0;
    this.at = 0; // height that has been filled
    this.red = 0; // of the pixel that is filled in part
    this.green = 0;
    this.blue = 0;
  }

  /** @param {number} column */
  begin(column) {
    this.column = column;
    this.at = 0;
    this.red = this.green = this.blue = 0;
  }

  /** Up to a height in pixels. @param {number} to @param {number} colour */
  fill(to, colour) {
    const { width, height, numbers } = this.pixels;
    const from = this.at;
    if (to > height) to = height;
    if (!(to > from)) return;
    let row = Math.floor(from);
    this.at = to;
    if (from > row || to < row + 1) {
      this.add(Math.min(to, row + 1) - from, colour);
      if (to < row + 1) return;
      this.put(row++);
    }
    const solid = this.solid[colour];
    const end = Math.floor(to);
    let spot = (height - 1 - row) * width + this.column;
    for (; row < end; row++, spot -= width) numbers[spot] = solid;
    if (to > end) this.add(to - end, colour);
  }

  /** @param {number} share @param {number} colour */
  add(share, colour) {
    this.red += share * this.colours[3 * colour];
    this.green += share * this.colours[3 * colour + 1];
    this.blue += share * this.colours[3 * colour + 2];
  }

  /** The pixel that is full now. @param {number} row from the foot */
  put(row) {
    const { width, height, numbers } = this.pixels;
    numbers[(height - 1 - row) * width + this.column] = pixelOf(this.red, this.green, this.blue);
    this.red = this.green = this.blue = 0;
  }

  /** The rest of the column is ground. */
  end() {
    const { width, height, numbers } = this.pixels;
    const { ground, column, at } = this;
    let row = Math.floor(at);
    if (at > row) {
      const rest = row + 1 - at;
      const below = ground[height - 1 - row];
      this.red += rest * (below & 255);
      this.green += rest * ((below >> 8) & 255);
      this.blue += rest * ((below >> 16) & 255);
      this.put(row++);
    }
    for (let y = height - 1 - row; y >= 0; y--) numbers[y * width + column] = ground[y];
  }
}

/** Pixels to which shares of colours are added. */
export class Raster {
  /** @param {number} width @param {number} height */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.cells = new Float32Array(4 * width * height); // red, green, blue, share of each
    this.tints = new Float32Array(0);
    this.cost = 0; // pixels that were touched
    this.painted = 0; // pixels in all, once there is a picture
  }

  /** Makes it empty. @param {number[][]} colours */
  begin(colours) {
    this.cells.fill(0);
    this.tints = Float32Array.from(colours.flat());
    this.painted = 0;
  }

  /** Adds a rectangle, in pixels with fractions. @param {number} x0 @param {number} y0
   * @param {number} x1 @param {number} y1 @param {number} colour */
  add(x0, y0, x1, y1, colour) {
    if (x0 < 0) x0 = 0;
    if (y0 < 0) y0 = 0;
    if (x1 > this.width) x1 = this.width;
    if (y1 > this.height) y1 = this.height;
    if (!(x1 > x0) || !(y1 > y0)) return;
    const { cells, tints } = this;
    const red = tints[3 * colour];
    const green = tints[3 * colour + 1];
    const blue = tints[3 * colour + 2];
    const firstX = Math.floor(x0);
    const firstY = Math.floor(y0);
    const lastX = Math.ceil(x1) - 1;
    const lastY = Math.ceil(y1) - 1;
    const hasEdge = x1 - x0 >= 4 && y1 - y0 >= 4;
    this.cost += (lastX - firstX + 1) * (lastY - firstY + 1);
    for (let y = firstY; y <= lastY; y++) {
      const high = (y === lastY ? y1 : y + 1) - (y === firstY ? y0 : y);
      const tone = hasEdge && y === firstY ? RIM : 1;
      let at = 4 * (y * this.width + firstX);
      for (let x = firstX; x <= lastX; x++, at += 4) {
        const share = high * ((x === lastX ? x1 : x + 1) - (x === firstX ? x0 : x));
        const shade = hasEdge && x === firstX ? RIM * share : tone * share;
        cells[at] += red * shade;
        cells[at + 1] += green * shade;
        cells[at + 2] += blue * shade;
        cells[at + 3] += share;
      }
    }
  }

  /** Rows [first, end) as pixels, over what is below: `ground` has the share of each pixel that the
   * colour `low` has there, the rest is paper.
   * @param {Pixels} pixels @param {number} first @param {number} end
   * @param {Float32Array | null} ground @param {number[]} low @param {number[]} paper */
  develop(pixels, first, end, ground, low, paper) {
    const { cells, width } = this;
    const { numbers } = pixels;
    const [paperRed, paperGreen, paperBlue] = paper;
    const [byRed, byGreen, byBlue] = low.map((byte, i) => byte - paper[i]);
    let painted = 0;
    for (let i = first * width, at = 4 * i; i < end * width; i++, at += 4) {
      const share = cells[at + 3];
      const rest = share < 1 ? 1 - share : 0;
      const over = share > 1 ? 1 / share : 1;
      const below = ground ? (ground[i] < 1 ? ground[i] : 1) : 0;
      painted += share;
      numbers[i] = pixelOf(
        cells[at] * over + rest * (paperRed + below * byRed),
        cells[at + 1] * over + rest * (paperGreen + below * byGreen),
        cells[at + 2] * over + rest * (paperBlue + below * byBlue),
      );
    }
    this.painted += painted;
  }
}

/** Adds the area of a rectangle to a share of each pixel.
 * @param {Float32Array} shares @param {number} width @param {number} height @param {number} x0
 * @param {number} y0 @param {number} x1 @param {number} y1 */
export function addShares(shares, width, height, x0, y0, x1, y1) {
  x0 = Math.max(0, x0);
  y0 = Math.max(0, y0);
  x1 = Math.min(width, x1);
  y1 = Math.min(height, y1);
  if (!(x1 > x0) || !(y1 > y0)) return 0;
  const firstX = Math.floor(x0);
  const firstY = Math.floor(y0);
  for (let y = firstY; y < y1; y++) {
    const high = Math.min(y1, y + 1) - Math.max(y0, y);
    for (let x = firstX, at = y * width + firstX; x < x1; x++, at++) {
      shares[at] += high * (Math.min(x1, x + 1) - Math.max(x0, x));
    }
  }
  return (Math.ceil(x1) - firstX) * (Math.ceil(y1) - firstY);
}
