import { printNotice } from '@custody/chains/terminal'
import { existsSync, readFileSync } from 'node:fs'
import { OperatorError } from '../command.ts'

/** Command-line values of a command: its options by name, and its arguments in order. */
export type Values = Record<string, string | boolean | undefined>
interface Typed {
  home: string
  words: string[]
  values: Values
}
/** Result of a command. `text`: a string is one line. */
export interface Outcome {
  result: Record<string, unknown>
  text?: string | readonly string[]
  exitCode?: number
  /** Lines for standard error. */
  notices?: readonly string[]
}
/** Implementation of a command in the operator's terminal. */
export type Run = (typed: Typed) => Outcome | Promise<Outcome>

/**
 * Returns the value of a required option.
 * @throws OperatorError if the option is missing
 */
export function need(values: Values, option: string): string {
  const value = values[option]
  if (typeof value !== 'string' || value === '') throw new OperatorError(`--${option} is required`)
  return value
}

function readText(path: string, option: string): string {
  if (!existsSync(path)) throw new OperatorError(`--${option}: the file ${path} does not exist`)
  return readFileSync(path, 'utf8')
}

/**
 * Returns a public key as PEM, from a file, or from `base64:` and its DER, as the control panel
 * shows it.
 */
export function readPublicKey(typed: string): string {
  const word = /^base64:([A-Za-z0-9+/]+={0,2})$/.exec(typed)
  return word
    ? `-----BEGIN PUBLIC KEY-----\n${word[1]}\n-----END PUBLIC KEY-----`
    : readText(typed, 'public-key')
}

export function warn(problems: readonly string[], what: string): void {
  for (const problem of problems) printNotice(`warning: ${what}: ${problem}`)
}

/** Returns the lines, or the sentence if there are none. */
export const linesOr = (lines: readonly string[], none: string): string | readonly string[] =>
  lines.length > 0 ? lines : none
