// The paths of requests about what is shown.

import type { ViewHeader } from "./answers";
import { filters, type State } from "./state";

interface Shown {
  readonly state: State;
  readonly header: ViewHeader;
  readonly latest: { readonly header: ViewHeader }; // loaded, and perhaps not shown yet
}

// served is candid's name for a recording, or for two that are compared.
export function served(s: { readonly recording: number; readonly against: number }): string {
  return s.against >= 0 ? `${s.against}-${s.recording}` : String(s.recording);
}

export class Questions {
  constructor(private readonly app: Shown) {}

  path(question: string, query: URLSearchParams): string {
    const { version } = this.app.latest.header;
    if (version) query.set("version", String(version));
    const q = query.toString();
    return `${served(this.app.state)}/${question}${q ? `?${q}` : ""}`;
  }

  // query has the filters, without some of them.
  query(without: readonly string[] = []): URLSearchParams {
    const q = filters(this.app.state);
    for (const w of without) q.delete(w);
    return q;
  }

  // sides are the paths of a request about what is shown and, if two are compared, about what it is
  // compared with.
  sides(question: string, q: URLSearchParams): [string, string | null] {
    const { pair } = this.app.header;
    const { base } = this.app.state;
    const of = (which: string): string => {
      const p = new URLSearchParams(q);
      if (pair) p.set("side", which);
      else if (base && which === "before") {
        p.set("from", String(base[0]));
        p.set("to", String(base[1]));
      }
      return this.path(question, p);
    };
    return [of("after"), pair || base ? of("before") : null];
  }

  // counted changes whenever what is counted does.
  get counted(): string {
    return `${filters(this.app.state)}&${this.app.state.split}&${this.app.state.base}`;
  }
}
