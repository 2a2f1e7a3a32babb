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
  /** Meaning of each argument, by its name in the usage. */
  args?: Readonly<Record<string, string>>
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

export const WORKSPACE = { '!workspace W': 'name of the workspace' }
export const TANK = { ...WORKSPACE, '!network N': 'network of the gas tank, such as ETH' }
export const STAKE_TANK = {
  ...WORKSPACE,
  '!network N': 'network of the gas tank: TRX, the only one with staking',
}
export const STAKE = {
  'amount COINS': 'amount in TRX, at least 1 (required)',
  'resource R': 'resource of the stake: ENERGY or BANDWIDTH (default: ENERGY)',
}
export const ORDER = {
  'order ID':
    'ID of an order that was recorded with "custody signer …" (default: a new order; required if no signer node runs on this machine)',
}
export const WISH = {
  ...WORKSPACE,
  '!sub-account S': 'name of the sub-account',
  '!role ROLE': 'role of the API user: full or read-only',
  '!public-key KEY':
    'PEM file with the RSA public key of the API user, or base64:… as the control panel shows it',
  'trust-file FILE':
    'file to write with the data that the API user needs to verify addresses offline (default: not written)',
}
