/** Elements from plain calls. Text is always a text node; styles go through the CSSOM, as the CSP asks. */

import { effect, type Read } from "./signal";

type Plain = string | number | boolean | null | undefined;
type Value = Plain | Read<Plain>;
export type Child = Node | string | number | null | undefined | false | Child[] | Read<Child>;
type Handler = (event: never) => void;
export interface Props {
  class?: Value;
  style?: Record<string, Value>;
  ref?: (element: never) => void;
  [name: string]: Value | Handler | Record<string, Value> | undefined;
}

const NOTHING_YET = Symbol();
const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "indeterminate"]);

/** Applies a value now and whenever it differs: even an attribute that is set to what it was costs the browser work. */
function live(value: Value, apply: (value: Plain) => void): void {
  if (typeof value !== "function") {
    apply(value);
    return;
  }
  let before: Plain | symbol = NOTHING_YET;
  effect(() => {
    const now = value();
    if (Object.is(now, before)) return;
    before = now;
    apply(now);
  });
}

function assign(element: Element, name: string, value: Plain): void {
  if (PROPERTIES.has(name)) (element as unknown as Record<string, Plain>)[name] = value ?? "";
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

function fill(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || name === "ref") continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2).toLowerCase(), value as EventListener);
    } else if (name === "style") {
      const style = (element as HTMLElement).style;
      for (const [key, entry] of Object.entries(value as Record<string, Value>)) {
        live(entry, (now) => style.setProperty(key, now === null ? "" : String(now)));
      }
    } else live(value as Value, (now) => assign(element, name, now));
  }
}

function nodes(child: Child): Node[] {
  if (child === null || child === undefined || child === false) return [];
  if (Array.isArray(child)) return child.flatMap(nodes);
  if (child instanceof Node) return [child];
  if (typeof child === "function") return nodes(child());
  return [document.createTextNode(String(child))];
}

/** Writes a text over the one that is shown, so that the page keeps its nodes; false where either is something else. */
function rewritten(shown: readonly Node[], now: Child): boolean {
  const [only] = shown;
  if (shown.length !== 1 || !(only instanceof Text) || (typeof now !== "string" && typeof now !== "number")) return false;
  const text = String(now);
  if (only.data !== text) only.data = text;
  return true;
}

export function append(parent: Node, child: Child): void {
  if (Array.isArray(child)) {
    for (const one of child) append(parent, one);
  } else if (typeof child === "function") {
    const end = document.createComment("");
    parent.appendChild(end);
    let shown: Node[] = [];
    effect(() => {
      const now = child();
      if (rewritten(shown, now)) return;
      const next = nodes(now);
      for (const old of shown) (old as ChildNode).remove();
      for (const node of next) end.parentNode?.insertBefore(node, end);
      shown = next;
    });
  } else for (const node of nodes(child)) parent.appendChild(node);
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  append(element, children);
  if (props) {
    fill(element, props);
    props.ref?.(element as never);
  }
  return element;
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag) as SVGElementTagNameMap[K];
  append(element, children);
  if (props) fill(element, props);
  return element;
}
