/** Where pictures go: the same calls draw on a canvas or write an SVG. */

export interface Painter {
  rect(x: number, y: number, w: number, h: number, fill: string, alpha?: number): void;
  frame(x: number, y: number, w: number, h: number, stroke: string, width: number, dash?: boolean): void;
  line(x1: number, y1: number, x2: number, y2: number, stroke: string, width: number): void;
  text(x: number, y: number, text: string, fill: string, size: number, align?: "center" | "left", italic?: boolean): void;
  dot(x: number, y: number, r: number, fill: string): void;
  /** A path by its data, as SVG has it. */
  stroke(path: string, stroke: string, width: number): void;
  /** Many small cells at once, where that is quicker than one by one. */
  raster?(x: number, y: number, w: number, h: number, picture: CanvasImageSource): void;
}

export const SANS = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif';
export const SERIF = '"STIX Two Text", "Iowan Old Style", Palatino, Georgia, "Liberation Serif", serif';

export class CanvasPainter implements Painter {
  constructor(private readonly context: CanvasRenderingContext2D) {}

  rect(x: number, y: number, w: number, h: number, fill: string, alpha = 1): void {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, w, h);
    this.context.globalAlpha = 1;
  }

  frame(x: number, y: number, w: number, h: number, stroke: string, width: number, dash = false): void {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = width;
    this.context.setLineDash(dash ? [2, 2] : []);
    this.context.strokeRect(x, y, w, h);
  }

  line(x1: number, y1: number, x2: number, y2: number, stroke: string, width: number): void {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = width;
    this.context.lineCap = "square";
    this.context.setLineDash([]);
    this.context.beginPath();
    this.context.moveTo(x1, y1);
    this.context.lineTo(x2, y2);
    this.context.stroke();
  }

  text(
    x: number, y: number, text: string, fill: string, size: number,
    align: "center" | "left" = "center", italic = false,
  ): void {
    this.context.font = italic ? `italic ${size}px ${SERIF}` : `${size}px ${SANS}`;
    this.context.textAlign = align;
    this.context.textBaseline = "middle";
    this.context.fillStyle = fill;
    this.context.fillText(text, x, y + size * 0.04);
  }

  dot(x: number, y: number, r: number, fill: string): void {
    this.context.fillStyle = fill;
    this.context.beginPath();
    this.context.arc(x, y, r, 0, 2 * Math.PI);
    this.context.fill();
  }

  stroke(path: string, stroke: string, width: number): void {
    this.context.strokeStyle = stroke;
    this.context.lineWidth = width;
    this.context.lineJoin = "round";
    this.context.setLineDash([]);
    this.context.stroke(new Path2D(path));
  }

  raster(x: number, y: number, w: number, h: number, picture: CanvasImageSource): void {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(picture, x, y, w, h);
  }
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text: string) => text.replace(/[&<>"]/g, (c) => ENTITIES[c]);
const short = (value: number) => String(Math.round(value * 100) / 100);

export class SvgPainter implements Painter {
  private readonly parts: string[] = [];
  private originX = 0;
  private originY = 0;

  moveTo(x: number, y: number): void {
    this.originX = x;
    this.originY = y;
  }

  rect(x: number, y: number, w: number, h: number, fill: string, alpha = 1): void {
    const opacity = alpha === 1 ? "" : ` fill-opacity="${alpha}"`;
    this.parts.push(`<rect ${this.box(x, y, w, h)} fill="${fill}"${opacity}/>`);
  }

  frame(x: number, y: number, w: number, h: number, stroke: string, width: number, dash = false): void {
    const dashes = dash ? ' stroke-dasharray="2 2"' : "";
    const line = `stroke="${stroke}" stroke-width="${width}"${dashes}`;
    this.parts.push(`<rect ${this.box(x, y, w, h)} fill="none" ${line}/>`);
  }

  line(x1: number, y1: number, x2: number, y2: number, stroke: string, width: number): void {
    const [a, b, c, d] = [x1 + this.originX, y1 + this.originY, x2 + this.originX, y2 + this.originY].map(short);
    this.parts.push(
      `<path d="M${a} ${b}L${c} ${d}" stroke="${stroke}" stroke-width="${width}" stroke-linecap="square" fill="none"/>`,
    );
  }

  text(
    x: number, y: number, text: string, fill: string, size: number,
    align: "center" | "left" = "center", italic = false,
  ): void {
    const place = `x="${short(x + this.originX)}" y="${short(y + this.originY)}"`;
    const anchor = align === "center" ? "middle" : "start";
    const font = `font-family="${escape(italic ? SERIF : SANS)}" font-size="${size}"${italic ? ' font-style="italic"' : ""}`;
    this.parts.push(
      `<text ${place} dy="0.36em" text-anchor="${anchor}" ${font} fill="${fill}">${escape(text)}</text>`,
    );
  }

  dot(x: number, y: number, r: number, fill: string): void {
    this.parts.push(
      `<circle cx="${short(x + this.originX)}" cy="${short(y + this.originY)}" r="${r}" fill="${fill}"/>`,
    );
  }

  stroke(path: string, stroke: string, width: number): void {
    const place = `translate(${short(this.originX)} ${short(this.originY)})`;
    this.parts.push(`<path d="${path}" transform="${place}" fill="none" stroke="${stroke}" stroke-width="${width}" stroke-linejoin="round"/>`);
  }

  done(width: number, height: number): string {
    const size = `width="${short(width)}" height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}"`;
    return `<svg xmlns="http://www.w3.org/2000/svg" ${size}>${this.parts.join("")}</svg>`;
  }

  private box(x: number, y: number, w: number, h: number): string {
    return `x="${short(x + this.originX)}" y="${short(y + this.originY)}" width="${short(w)}" height="${short(h)}"`;
  }
}
