// Operator commands with the program name of the server's installation.
import { session } from './scope.ts'

/**
 * Returns a custody command line.
 * @param words after the program's name
 */
export const custody = (words: string): string =>
  `${session.value?.command ?? 'npx custody'} ${words}`
