import type { Run } from './typed.ts'

/**
 * A command of the operator. Parsing, help, the check of the documentation and the completion of
 * shells are all derived from these definitions. The modules that a command needs are loaded when
 * it runs.
 */
export interface Definition {
  /** Words, followed by arguments in commander's notation: `<NEEDED>`, `[OPTIONAL]`. */
  usage: string
  summary: string
  /** Description of each argument, by its name in `usage`. */
  args?: Readonly<Record<string, string>>
  /** Possible values of the first argument, for shell completion. */
  choices?: readonly string[]
  /** Options as `name VALUE`, or `name` for a flag; a preceding `!` marks a required option. */
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
  '!role ROLE': 'role of the API user: full, approve (cannot pay), or read-only',
  '!public-key KEY':
    'PEM file with the RSA public key of the API user, or base64:… as the control panel shows it',
  'person PERSON':
    'ID of the person of policy documents who owns the API key, permanently (default: none); a document that lists the key takes precedence',
  'trust-file FILE':
    'file to write with the data that the API user needs to verify addresses offline (default: not written)',
}
