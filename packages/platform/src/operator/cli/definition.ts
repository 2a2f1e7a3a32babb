import type { Run } from './typed.ts'

/**
 * A command of the operator. The tables of them are the one place from which parsing, help, its
 * check in the documents and the completion of shells come. What a command needs is loaded when it
 * is run.
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
export const wordsOf = ({ usage }: Pick<Definition, 'usage'>): string[] =>
  usage.split(' ').filter((word) => !isArgument(word))
export const argumentsOf = ({ usage }: Pick<Definition, 'usage'>): string[] =>
  usage.split(' ').filter(isArgument)

export const WORKSPACE = { '!workspace W': 'workspace' }
export const TANK = { ...WORKSPACE, '!network N': 'network of the gas tank, such as ETH' }
export const STAKE = {
  'amount COINS': 'TRX to stake or unstake',
  'resource R': 'ENERGY (default) or BANDWIDTH',
}
export const ORDER = { 'order ID': 'the order as another node printed it' }
export const WISH = {
  ...WORKSPACE,
  '!sub-account S': 'sub-account',
  '!role ROLE': 'full or read-only',
  '!public-key KEY':
    'file with the PEM of the caller’s RSA public key, or base64:… as the control panel shows it',
  'trust-file FILE': 'where to write what the caller pins, to check addresses by itself',
}
