// What the browser remembers for the page.

export function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function store(key: string, v: string): void {
  try {
    localStorage.setItem(key, v);
  } catch {
    // The browser stores nothing for files: the choice lasts as long as the page.
  }
}
