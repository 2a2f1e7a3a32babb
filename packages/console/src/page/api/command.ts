// Commands of operators, as the server says that its installation has them.
import { session } from './scope.ts'

/** A command line of custody. @param words after the name of the program */
export const custody = (words: string): string =>
  `${session.value?.command ?? 'npx custody'} ${words}`
