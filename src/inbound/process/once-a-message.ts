// What was found out about a message, remembered for as long as the message is there: in session and in processing it is
// the same examination, and each recipient's step asks again. A failure is not remembered: the next one who asks tries again.
import type { Examination } from "../types.ts";

export type OnceAMessage<V> = (of: Examination, name: string, find: () => Promise<V>) => Promise<V>;

/** A memory of its own; `name` tells apart what is asked of one message. */
export function onceAMessage<V>(): OnceAMessage<V> {
  const known = new WeakMap<Examination, Map<string, Promise<V>>>();
  return (of, name, find) => {
    const answers = known.get(of) ?? new Map<string, Promise<V>>();
    known.set(of, answers);
    const before = answers.get(name);
    if (before) return before;
    const finding = find();
    answers.set(name, finding);
    finding.catch(() => answers.delete(name));
    return finding;
  };
}
