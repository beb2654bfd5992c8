import { answerQuestions } from '#toolbox';
import { linesWithin } from './lines.ts';

answerQuestions(linesWithin);
