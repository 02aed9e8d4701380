// The threads of the recording, as rows, and which of them are chosen.

import { began } from "../page/format";
import { kindOf } from "../page/kinds";
import type { Model } from "../page/model";
import { tallyOf, type CountsHead, type ThreadSums, type ViewHeader } from "./answers";
import { processOf, ThreadRows, type Match } from "./match";
import type { State } from "./state";
import { ask } from "./wire";

interface Shown {
  readonly header: ViewHeader;
  readonly model: Model;
  readonly state: State;
  readonly questions: { path(question: string, query: URLSearchParams): string };
}

export class ThreadsShown {
  private known: ThreadRows | null = null;
  private readonly sumsOf = new Map<string, Promise<ThreadSums>>(); // the last requests

  constructor(private readonly app: Shown) {}

  private get all(): ThreadRows {
    if (this.known?.header !== this.app.header) this.known = new ThreadRows(this.app.header);
    return this.known;
  }

  // rows are the rows in which threads are shown.
  get rows(): readonly Match[] {
    return this.all.rows;
  }

  // alike are the threads that share a row with a thread.
  alike(t: number): readonly number[] {
    return this.all.alike(t);
  }

  // rowName is the name of a row of threads.
  rowName(m: Match): string {
    if (!this.app.header.pair) return this.app.model.threadName(m.first);
    const n = Math.max(m.before.length, m.after.length);
    return `${this.label(m.first)}${n > 1 ? ` × ${n}` : ""}`;
  }

  label(t: number): string {
    const { name, os, since } = this.app.header.threads[t];
    return `${name || os || "thread"}${began(since)}`;
  }

  // process is the process all of whose threads, and no others, are chosen; -1 if there is none.
  get process(): number {
    return processOf(this.app.header, this.app.state.threads);
  }

  // kind is the kind of threads that is chosen; "" if there is none.
  get kind(): string {
    const { header, state } = this.app;
    return state.threads.size ? kindOf(header.threads, (t) => state.threads.has(t)) : "";
  }

  // sums requests the sum of each thread over the samples that some of the filters leave; if two
  // recordings are compared, for one of them.
  async sums(q: URLSearchParams, side: "before" | "after"): Promise<ThreadSums> {
    q.set("cells", "no");
    if (this.app.header.pair) q.set("side", side);
    const path = this.app.questions.path("counts", q);
    let known = this.sumsOf.get(path);
    if (!known) {
      if (this.sumsOf.size > 3) this.sumsOf.clear();
      known = ask<CountsHead>(path).then((m) => ({ weight: m.f64("threadWeight"), samples: m.f64("threadCount"), tally: tallyOf(m.head) }));
      known.catch(() => this.sumsOf.delete(path));
      this.sumsOf.set(path, known);
    }
    return known;
  }
}
