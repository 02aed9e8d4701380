// Making elements. Text is only ever set as text, never as markup: names come
// from the program that was profiled.

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | EventListener | undefined>;

export function el<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === false) continue;
    if (typeof v === "function") e.addEventListener(k, v);
    else if (v === true) e.setAttribute(k, "");
    else e.setAttribute(k, String(v));
  }
  for (const c of children) if (c !== null && c !== undefined && c !== false) e.append(c);
  return e;
}

export interface Choice<T extends string> { readonly value: T; readonly label: string; readonly title: string }

// segmented is a row of buttons of which one is pressed.
export function segmented<T extends string>(
  name: string, choices: readonly Choice<T>[], pick: (v: T) => void,
): { root: HTMLElement; set(v: T): void } {
  const buttons = choices.map((c) =>
    el("button", { type: "button", title: c.title, "aria-pressed": "false", click: () => pick(c.value) }, c.label));
  return {
    root: el("div", { class: "segmented", role: "group", "aria-label": name }, ...buttons),
    set(v) {
      choices.forEach((c, i) => buttons[i].setAttribute("aria-pressed", String(c.value === v)));
    },
  };
}

// liken makes an element on the page look like one that is not, and gives what is on the
// page then: changing texts costs a browser far less than new elements do. What can
// be operated is replaced, because it has listeners of its own.
export function liken(old: ChildNode, want: ChildNode): ChildNode {
  if (old.nodeType === Node.TEXT_NODE && want.nodeType === Node.TEXT_NODE) {
    if (old.nodeValue !== want.nodeValue) old.nodeValue = want.nodeValue;
    return old;
  }
  if (!(old instanceof HTMLElement && want instanceof HTMLElement) || old.tagName !== want.tagName || old.matches("a, button, input, select, textarea")) {
    old.replaceWith(want);
    return want;
  }
  for (const { name, value } of want.attributes) if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const name of old.getAttributeNames()) if (name !== "style" && !want.hasAttribute(name)) old.removeAttribute(name);
  if (old.style.cssText !== want.style.cssText) old.style.cssText = want.style.cssText;
  let at = old.firstChild;
  for (let c = want.firstChild; c; ) {
    const { nextSibling } = c; // before it goes to the other one
    if (at) at = liken(at, c).nextSibling;
    else old.append(c);
    c = nextSibling;
  }
  while (at) {
    const { nextSibling } = at;
    at.remove();
    at = nextSibling;
  }
  return old;
}
