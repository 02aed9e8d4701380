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

// segmented is a row of buttons, one of which is pressed.
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

// keepFocus rebuilds a part of the page: if a control in it had the keyboard's focus, the control
// of the same name gets it again, or else the one that otherwise returns.
export function keepFocus(root: HTMLElement, make: () => void, otherwise?: () => HTMLElement | null): void {
  const name = (e: Element): string => e.id || e.getAttribute("aria-label") || (e.tagName === "BUTTON" ? e.textContent ?? "" : "");
  const at = root !== document.activeElement && root.contains(document.activeElement) ? document.activeElement : null;
  const was = at && name(at);
  make();
  if (was === null || root.contains(at)) return;
  const same = was ? [...root.querySelectorAll<HTMLElement>("button, input, select, a, [tabindex]")].find((e) => name(e) === was) : null;
  (same ?? otherwise?.())?.focus();
}

// copyText copies a text. Where the clipboard is not permitted, as for files, it is selected and copied.
export async function copyText(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
