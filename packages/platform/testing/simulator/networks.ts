/**
 * A network of the simulation: its receivers, the initial balance of a wallet, and the block
 * interval.
 */
export interface SimulatedNetwork {
  code: string
  assets: readonly string[]
  /** Receiving addresses, by asset. */
  to: Record<string, string>
  /**
   * Amount in coins that the receiving account gets before the faults begin. Payments are smaller
   * than the amount that creates it. Absent: a payment creates it, or it needs no creation.
   */
  created?: string
  /** Initial balance of each wallet, in coins. */
  held: string
  /** Base amount of payments, in coins; each payment is slightly larger. */
  unit: string
  /** Minimum deposit, in coins. */
  deposit: string
  blockMs: number
  /**
   * Maximum depth of reorganisations, beyond the blocks that count as final; 0: the local chain is never
   * reorganised.
   */
  depthMax: number
  /**
   * Whether further addresses are swept to the first one. If false, they are tags of the first
   * address, or their coins stay where they are.
   */
  isSwept: boolean
  /** Whether contracts can pay the network's coin to addresses. */
  hasContracts?: true
}

const EVM_TO = '0x00000000000000000000000000000000000000AA'
const TRON_TO = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'

/** Networks of the simulation, in the order in which they are drawn. */
export const NETWORKS: readonly SimulatedNetwork[] = [
  {
    code: 'ETH',
    assets: ['ETH', 'USDT_ETH'],
    to: { ETH: EVM_TO, USDT_ETH: EVM_TO },
    held: '50',
    unit: '0.001',
    deposit: '0.5',
    blockMs: 2000,
    depthMax: 8,
    isSwept: true,
    hasContracts: true,
  },
  {
    code: 'BTC',
    assets: ['BTC'],
    to: { BTC: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080' },
    held: '5',
    unit: '0.0001',
    deposit: '0.01',
    blockMs: 5000,
    depthMax: 8,
    isSwept: false,
  },
  {
    code: 'XRP',
    assets: ['XRP'],
    to: { XRP: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe' },
    created: '20',
    held: '500',
    unit: '0.01',
    deposit: '3',
    blockMs: 2000,
    depthMax: 0,
    isSwept: false,
  },
  {
    code: 'TRX',
    assets: ['TRX', 'USDT_TRX'],
    to: { TRX: TRON_TO, USDT_TRX: TRON_TO },
    held: '3000',
    unit: '2',
    deposit: '30',
    blockMs: 3000,
    depthMax: 6,
    isSwept: true,
    hasContracts: true,
  },
  {
    code: 'XLM',
    assets: ['XLM'],
    to: { XLM: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ' },
    created: '5',
    held: '500',
    unit: '0.5',
    deposit: '3',
    blockMs: 3000,
    depthMax: 0,
    isSwept: false,
  },
  {
    code: 'ADA',
    assets: ['ADA'],
    to: { ADA: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz' },
    held: '300',
    unit: '2',
    deposit: '5',
    blockMs: 2000,
    depthMax: 8,
    isSwept: false,
  },
  {
    code: 'SOL',
    assets: ['SOL'],
    to: { SOL: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin' },
    held: '20',
    unit: '0.01',
    deposit: '1',
    blockMs: 1500,
    depthMax: 0,
    isSwept: true,
  },
]
