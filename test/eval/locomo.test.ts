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
    sample_id: 'conv-2',
    conversation: {
      session_1_date_time: '12:05 am on 31 December, 2022',
      session_1: [turn('Cid', 'D1:1', 'Good morning.')],
    },
    qa: [{ question: 'Who greeted today?', evidence: ['D1:1'], category: 4, now: '2022-12-31T12:00:00.000Z' }],
  },
];

describe('the LoCoMo reader', () => {
  const { facts, questions } = fromLocomo(SAMPLE);

  it('makes every turn that says something a memory of its conversation, with its session and a time after the one before', () => {
    expect(facts.map(({ key, user, content, ref, at }) => [key, user, content, ref, at])).toEqual([
      ['conv-1/D1:1', 'conv-1', 'Ada: Hi Ben!', 'conv-1/session_1', '2023-05-08T13:56:00.000Z'],
      ['conv-1/D1:2', 'conv-1', 'Ben: I adopted a kitten yesterday.', 'conv-1/session_1', '2023-05-08T13:56:20.000Z'],
      [
        'conv-1/D2:1',
        'conv-1',
        'Ada: I start at the library on Monday.',
        'conv-1/session_2',
        '2023-05-17T14:31:00.000Z',
      ],
      ['conv-2/D1:1', 'conv-2', 'Cid: Good morning.', 'conv-2/session_1', '2022-12-31T00:05:00.000Z'],
    ]);
  });

  it('leaves out adversarial questions and those without evidence, and splits joined evidence', () => {
    expect(questions).toEqual([
      {
        question: 'When did Ben adopt a kitten?',
        user: 'conv-1',
        kind: 'temporal',
        evidence: ['conv-1/D1:2'],
      },
      {
        question: 'What is new with both?',
        user: 'conv-1',
        kind: 'multi_hop',
        evidence: ['conv-1/D1:2', 'conv-1/D2:1'],
      },
      {
        question: 'Where does Ada start?',
        user: 'conv-1',
        kind: 'single_hop',
        evidence: ['conv-1/D2:1'],
      },
      {
        question: 'Who greeted today?',
        user: 'conv-2',
        kind: 'single_hop',
        evidence: ['conv-2/D1:1'],
        now: '2022-12-31T12:00:00.000Z',
      },
    ]);
  });

  it('refuses a file of another format', () => {
    expect(() => fromLocomo({ facts: [] })).toThrow();
    const conversation = { session_1_date_time: '10:00 am on 1 June, 2023', session_1: [{ text: 'x' }] };
    expect(() => fromLocomo([{ sample_id: 'a', conversation, qa: [] }])).toThrow('speaker');
    const later = { ...conversation, session_1_date_time: 'later', session_1: [] };
    expect(() => fromLocomo([{ sample_id: 'a', conversation: later, qa: [] }])).toThrow('"later" is no time');
  });
});
