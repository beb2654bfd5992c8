import { describe, expect, it } from 'vitest';
import { fromLocomo } from '../../eval/locomo.ts';

const turn = (speaker: string, dia_id: string, text: string) => ({ speaker, dia_id, text });

const SAMPLE = [
  {
    sample_id: 'conv-1',
    conversation: {
      speaker_a: 'Ada',
      speaker_b: 'Ben',
      session_1_date_time: '1:56 pm on 8 May, 2023',
      session_1: [
        turn('Ada', 'D1:1', 'Hi Ben!'),
        { ...turn('Ben', 'D1:2', 'I adopted a kitten yesterday.'), img_url: ['x'], blip_caption: 'a kitten' },
      ],
      session_2_date_time: '2:31 pm on 17 May, 2023',
      session_2: [turn('Ada', 'D2:1', 'I start at the library on Monday.'), turn('Ben', 'D2:2', ' ')],
      session_3_date_time: '10:00 am on 1 June, 2023',
    },
    qa: [
      { question: 'When did Ben adopt a kitten?', answer: '7 May 2023', evidence: ['D1:2'], category: 2 },
      { question: 'What is new with both?', answer: 'A kitten, a job', evidence: ['D1:2; D02:1', 'D1:2'], category: 1 },
      { question: 'What does Ada dream of?', answer: 2022, evidence: [], category: 3 },
      { question: 'Where does Ada start?', answer: 'At the library', evidence: ['D2:1', 'D9:9'], category: 4 },
      { question: 'What was said last?', answer: 'Nothing', evidence: ['D2:2'], category: 4 },
      { question: 'Which dog has Ben?', adversarial_answer: 'A pug', evidence: ['D1:2'], category: 5 },
    ],
  },
  {
    conversation: { session_1: [turn('Cid', 'D1:1', 'Good morning.')] },
    qa: [{ question: 'Who greeted?', answer: 'Cid', evidence: ['D1:1'], category: 4 }],
  },
];

describe('the LoCoMo reader', () => {
  const { facts, questions } = fromLocomo(SAMPLE);

  it('makes every turn that says something a memory of its conversation', () => {
    expect(facts).toEqual([
      { key: 'conversation-1/D1:1', user: 'conversation-1', content: 'Ada: Hi Ben!' },
      { key: 'conversation-1/D1:2', user: 'conversation-1', content: 'Ben: I adopted a kitten yesterday.' },
      { key: 'conversation-1/D2:1', user: 'conversation-1', content: 'Ada: I start at the library on Monday.' },
      { key: 'conversation-2/D1:1', user: 'conversation-2', content: 'Cid: Good morning.' },
    ]);
  });

  it('leaves out adversarial questions and those without evidence, and splits joined evidence', () => {
    expect(questions).toEqual([
      {
        question: 'When did Ben adopt a kitten?',
        user: 'conversation-1',
        kind: 'temporal',
        evidence: ['conversation-1/D1:2'],
      },
      {
        question: 'What is new with both?',
        user: 'conversation-1',
        kind: 'multi_hop',
        evidence: ['conversation-1/D1:2', 'conversation-1/D2:1'],
      },
      {
        question: 'Where does Ada start?',
        user: 'conversation-1',
        kind: 'single_hop',
        evidence: ['conversation-1/D2:1'],
      },
      { question: 'Who greeted?', user: 'conversation-2', kind: 'single_hop', evidence: ['conversation-2/D1:1'] },
    ]);
  });

  it('refuses a file of another format', () => {
    expect(() => fromLocomo({ facts: [] })).toThrow();
    expect(() => fromLocomo([{ conversation: { session_1: [{ text: 'x' }] }, qa: [] }])).toThrow();
  });
});
