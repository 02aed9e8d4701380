// Keeps up with a recording that is still being made.

import { kindChoices } from "../page/kinds";
import type { ViewHeader } from "./answers";
import { ask, type Message } from "./wire";

interface Shown {
  readonly header: ViewHeader;
  reshape(signal: AbortSignal, steady: boolean): Promise<void>;
  onLoad(): void;
  onError(message: string): void;
}

// structure is what the page was built for: when it changes, the page is rebuilt.
function structure(h: ViewHeader): string {
  return JSON.stringify([h.events, h.processes.length > 1, h.kernelCPU.some((v) => v > 0), kindChoices(h.threads), h.growing, h.stopped, h.title]);
}

export class Follower {
  private running: AbortController | null = null;

  constructor(private readonly app: Shown) {}

  stop(): void {
    this.running?.abort();
  }

  // follow asks, again and again, for what is new of the recording that candid calls n.
  async follow(n: string): Promise<void> {
    const { app } = this;
    const mine = (this.running = new AbortController());
    while (app.header.growing || app.header.stopped) {
      try {
        const m: Message<{ version: number; growing: boolean }> = await ask(`${n}/wait?version=${app.header.version}`, mine.signal);
        if (mine.signal.aborted) return;
        if (m.head.version === app.header.version) continue;
        const before = structure(app.header);
        await app.reshape(mine.signal, true);
        if (mine.signal.aborted) return;
        if (structure(app.header) !== before) app.onLoad();
      } catch (e) {
        if (mine.signal.aborted) return;
        app.onError(e instanceof Error ? e.message : String(e));
        return;
      }
    }
  }
}
