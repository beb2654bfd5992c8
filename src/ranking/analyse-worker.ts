import { analyse } from './analyse.ts';
import { answerQuestions } from './thread.ts';

// One string transfers faster than an array; no term contains a line break.
answerQuestions((text: string): string => analyse(text).join('\n'));
