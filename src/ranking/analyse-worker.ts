import { analyse } from './analyse.ts';
import { answerQuestions } from './thread.ts';

// One text is handed over faster than many; no term holds a line break.
answerQuestions((text: string): string => analyse(text).join('\n'));
