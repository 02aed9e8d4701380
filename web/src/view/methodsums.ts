// The sums of each method over what is shown.

import { sumsOf, type Methods, type Sums } from "./methods";
import type { Questions } from "./questions";
import { ask } from "./wire";

// BothSums are the sums, and those of what is compared with.
export interface BothSums { readonly now: Sums; readonly before: Sums | null }

interface Shown {
  readonly methods: Methods;
  readonly generation: number;
  readonly latest: { readonly methods: Methods };
  readonly questions: Questions;
}

export class MethodSums {
  known: { generation: number; sums: Sums } | null = null; // once they were requested
  private asked = ""; // the last request
  private answer: Promise<BothSums> | null = null;
  private running: AbortController | null = null;

  constructor(private readonly app: Shown) {}

  // ask requests the sums; it cancels the previous request.
  ask(): Promise<BothSums> {
    const { questions, latest } = this.app;
    const [now, before] = questions.sides("methods", questions.query());
    const { n } = latest.methods;
    const asked = `${now} ${before}`;
    if (asked !== this.asked) {
      this.running?.abort();
      const mine = (this.running = new AbortController());
      const get = async (path: string): Promise<Sums> => sumsOf(await ask(path, mine.signal), n);
      this.asked = asked;
      this.answer = Promise.all([get(now), before ? get(before) : null]).then(([now, before]) => ({ now, before }));
      this.answer.catch(() => asked === this.asked && (this.asked = ""));
    }
    return this.answer!;
  }

  // heaviest is the heaviest node of a method, -1 if it has none.
  async heaviest(method: number): Promise<number> {
    const { now, before } = await this.ask();
    return now.node[method] >= 0 ? now.node[method] : (before?.node[method] ?? -1);
  }

  // own is the self of the whole method of a symbol, 0 while it is not known.
  own(symbol: number): number {
    const method = this.app.methods.of[symbol] ?? -1;
    return method >= 0 && this.known?.generation === this.app.generation ? this.known.sums.self[method] : 0;
  }
}
