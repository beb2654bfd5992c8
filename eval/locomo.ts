import { z } from 'zod';
import type { Dataset, Fact, Question } from './dataset.ts';

const Turn = z.object({ speaker: z.string(), dia_id: z.string(), text: z.string() });

/** The public file: a list of conversations, each with its sessions under the keys `session_1`, `session_2`, … */
const File = z.array(
  z.object({
    conversation: z.record(z.string(), z.unknown()),
    qa: z.array(
      z.object({ question: z.string(), evidence: z.array(z.string()).default([]), category: z.int().min(1).max(5) }),
    ),
  }),
);

/** The order in which the file counts its categories. */
const KINDS = ['', 'multi_hop', 'temporal', 'open_domain', 'single_hop', 'adversarial'] as const;

/**
 * A conversation becomes a user, a turn becomes a memory. Left out: turns without text, adversarial questions
 * (their answer is not in the conversation), and questions without evidence.
 */
export function fromLocomo(file: unknown): Dataset {
  const facts: Fact[] = [];
  const questions: Question[] = [];
  for (const [index, { conversation, qa }] of File.parse(file).entries()) {
    const user = `conversation-${index + 1}`;
    const turns = Object.entries(conversation)
      .filter(([name]) => /^session_\d+$/.test(name))
      .flatMap(([, session]) => z.array(Turn).parse(session))
      .filter(({ text }) => text.trim() !== '');
    const keys = new Set<string>();
    for (const { speaker, dia_id, text } of turns) {
      const key = `${user}/${dia_id}`;
      keys.add(key);
      facts.push({ key, user, content: `${speaker}: ${text}` });
    }
    for (const { question, evidence, category } of qa) {
      const known = turnsNamed(evidence).map((turn) => `${user}/${turn}`);
      const present = known.filter((key) => keys.has(key));
      if (KINDS[category] === 'adversarial' || present.length === 0) continue;
      questions.push({ question, user, kind: KINDS[category] as string, evidence: present });
    }
  }
  return { facts, questions };
}

/** Some entries of the file hold several turns (`D8:6; D9:17`) or a padded number (`D30:05`). */
const turnsNamed = (evidence: readonly string[]): string[] => [
  ...new Set(
    evidence.flatMap((entry) =>
      [...entry.matchAll(/D(\d+):(\d+)/g)].map(([, session, turn]) => `D${Number(session)}:${Number(turn)}`),
    ),
  ),
];
