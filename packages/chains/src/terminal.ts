import { reasonOf } from './reason.ts'

/**
 * Prints the output of commands to the operator's terminal. Memos, tags, names and messages of
 * peers, nodes and exchanges are untrusted text: a control sequence in it could erase or rewrite
 * lines that the operator compares, and a bidirectional override could reverse an address. Every
 * such character is printed as `\uXXXX`. All commands of the operator print through this module.
 */

/**
 * C0, DEL, C1, directional marks, line and paragraph separators, bidirectional overrides and
 * isolates, annotations, half surrogates.
 */
const UNSAFE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\p{Cs}]/gu

const escaped = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Returns the text as a single line in which every control character is visible. */
export const oneLine = (text: string): string => text.replace(UNSAFE, escaped)

/**
 * Does the same for text of several lines, whose line feeds stay. Use it only for text whose line
 * breaks are our own.
 */
export const manyLines = (text: string): string => text.split('\n').map(oneLine).join('\n')

/**
 * Returns the JSON of a value, safe to print. It parses to exactly the same value, because these
 * characters can only occur in its strings.
 */
export const jsonText = (value: unknown, indent?: number): string =>
  manyLines(JSON.stringify(value, null, indent))

/** An error for the operator at the terminal. Each argument is one line, whatever it contains. */
export class TerminalError extends Error {
  constructor(...lines: readonly string[]) {
    super(lines.map(oneLine).join('\n'))
    this.name = 'TerminalError'
  }
}

/**
 * Returns the command-line name of this installation: a bundle has it on the PATH of its host, a
 * checkout runs it with npx.
 */
export const commandName = (): 'custody' | 'npx custody' =>
  process.env['CUSTODY_BUNDLE'] === undefined ? 'npx custody' : 'custody'

/**
 * Rewrites the commands in a sentence for this installation: `custody` in a bundle; in a checkout
 * `npx custody` and `npm start`, as our texts are written. Use it only for our own sentences, never
 * for data.
 */
export const asInstalled = (text: string): string =>
  commandName() === 'npx custody'
    ? text
    : text.replaceAll(/\bnpx custody\b/g, 'custody').replaceAll('npm start', 'custody start')

/** Returns the message of an error. Only a {@link TerminalError} may have several lines. */
export const errorText = (error: unknown): string =>
  asInstalled(error instanceof TerminalError ? manyLines(error.message) : oneLine(reasonOf(error)))

type Text = string | readonly string[]
const textOf = (lines: Text): string =>
  `${asInstalled((typeof lines === 'string' ? [lines] : lines).map(oneLine).join('\n'))}\n`

/** Prints lines on standard output. A string is one line. */
export function printLines(lines: Text): void {
  process.stdout.write(textOf(lines))
}

/** Prints lines on standard error. A string is one line. */
export function printNotice(lines: Text): void {
  process.stderr.write(textOf(lines))
}

/** Prints an error on standard error, after the name of the command. */
export function printError(command: string, error: unknown): void {
  process.stderr.write(`${command}: ${errorText(error)}\n`)
}

/** Prints one JSON document on standard output. */
export function printJson(value: unknown, indent?: number): void {
  process.stdout.write(`${jsonText(value, indent)}\n`)
}
