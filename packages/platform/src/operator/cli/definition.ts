import type { Run } from './typed.ts'

/** A command of the operator. What it needs is loaded when it is run. */
export interface Definition {
  /** Words, then arguments as commander writes them: `<NEEDED>`, `[OPTIONAL]`. */
  usage: string
  summary: string
  /** By `name VALUE`, or `name` alone for a flag; `!` before it: it is needed. */
  options?: Record<string, string>
  run: () => Promise<Run>
}

export const wordsOf = ({ usage }: Pick<Definition, 'usage'>): string[] => usage.split(' ').filter((word) => !/^[<[]/.test(word))

export const WORKSPACE = { '!workspace W': 'workspace' }
export const TANK = { ...WORKSPACE, '!network N': 'network of the gas tank, such as ETH' }
export const STAKE = { 'amount COINS': 'TRX to stake or unstake', 'resource R': 'ENERGY (default) or BANDWIDTH' }
export const ORDER = { 'order ID': 'the order as another node printed it' }
export const WISH = {
  ...WORKSPACE, '!sub-account S': 'sub-account', '!role ROLE': 'full or read-only',
  '!public-key KEY': 'file with the PEM of the caller’s RSA public key, or base64:… as the control panel shows it',
  'trust-file FILE': 'where to write what the caller pins, to check addresses by itself',
}
