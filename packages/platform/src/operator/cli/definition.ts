import type { Run } from './typed.ts'

/**
 * A command of the operator's. The table of them is the one place from which parsing, help, its check in the documents and the
 * completion of shells come.
 */
export interface Definition {
  /** Words, then arguments as commander writes them: `<NEEDED>`, `[OPTIONAL]`. */
  usage: string
  summary: string
  /** What the first argument may be, for the completion of shells. */
  choices?: readonly string[]
  /** By `name VALUE`, or `name` alone for a flag; `!` before it: it is needed. */
  options?: Record<string, string>
  run: () => Promise<Run>
}

const isArgument = (word: string): boolean => /^[<[]/.test(word)
export const wordsOf = ({ usage }: Definition): string[] => usage.split(' ').filter((word) => !isArgument(word))
export const argumentsOf = ({ usage }: Definition): string[] => usage.split(' ').filter(isArgument)
