import { answerQuestions } from '#ranking';
import { linesWithin } from './context-lines.ts';

answerQuestions(linesWithin);
