/** Differences between the chains derived from Bitcoin. A further chain is one more entry. */
export type UtxoNetwork = {
  code: string
  path: string
  /** Version text that the node reports. */
  subversion: string
  version: number
  genesis: Buffer
  address: { hrp: string | null; p2pkh: number; p2sh: number; cashaddr: string | null }
  segwit: boolean
  /** Bitcoin Cash: scripts run in its own virtual machine, which requires SIGHASH_FORKID. */
  forkId: boolean
  /** `full`: a higher fee replaces any waiting transaction. `none`: the first transaction stays. */
  replacement: 'full' | 'none'
  maturity: number
  /** Initial subsidy in satoshi; it halves every 150 blocks. */
  subsidy: bigint
  maxMoney: bigint
  /** Satoshi per virtual byte: minimum relay rate, and rate for computing dust. */
  relayRate: bigint
  dustRate: bigint
  /** Satoshi below which an output is dust whatever its script. */
  dustFloor: bigint
  /** Minimum size of a transaction without its witness in bytes, and its highest version. */
  sizeMin: number
  versionMax: number
  /**
   * Fee estimates in satoshi per virtual byte: by target for estimatesmartfee, or one for Bitcoin
   * Cash's estimatefee, which accepts no target.
   */
  fees: {
    targets: readonly (readonly [target: number, rate: bigint])[]
    floor: bigint
    method: 'estimatesmartfee' | 'estimatefee'
  }
  /** Fee rate above which sendrawtransaction rejects, in satoshi per 1000 bytes. */
  maxFeeRate: bigint
  /** 1: getblock returns only ids, as in Dogecoin 1.14. */
  blockVerbosity: number
  /** Dash: a block is locked as soon as another one follows it. */
  chainLocks: boolean
  /**
   * Dash, DIP-2: a transaction's version may have a type in its upper half, and a payload after the
   * lock time.
   */
  specialTransactions: boolean
  /**
   * Litecoin: a block may end with a transaction (HogEx) that moves coins into and out of extension
   * blocks.
   */
  extensionBlocks: boolean
  /** Bitcoin Cash, CHIP-2022-02: outputs may carry tokens, in a prefix of their script. */
  cashTokens: boolean
  blocks: { busyMs: number; idleMs: number; quiet: number }
}

const COIN = 100_000_000n
const BITCOIN_GENESIS =
  '0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa' +
  '4b1e5e4adae5494dffff7f20020000000101000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d' +
  '0104455468652054696d65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f75742066' +
  '6f722062616e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4' +
  'f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000'

const BITCOIN = {
  code: 'BTC',
  path: '/btc',
  subversion: '/Satoshi:29.0.0/',
  version: 290000,
  genesis: Buffer.from(BITCOIN_GENESIS, 'hex'),
  address: { hrp: 'bcrt', p2pkh: 111, p2sh: 196, cashaddr: null },
  segwit: true,
  forkId: false,
  replacement: 'full',
  maturity: 100,
  subsidy: 50n * COIN,
  maxMoney: 21_000_000n * COIN,
  relayRate: 1n,
  dustRate: 3n,
  dustFloor: 0n,
  sizeMin: 65,
  versionMax: 3,
  fees: {
    targets: [
      [2, 10n],
      [6, 5n],
      [12, 3n],
      [24, 2n],
    ],
    floor: 1n,
    method: 'estimatesmartfee',
  },
  maxFeeRate: COIN / 10n,
  blockVerbosity: 3,
  chainLocks: false,
  specialTransactions: false,
  extensionBlocks: false,
  cashTokens: false,
  blocks: { busyMs: 2000, idleMs: 30_000, quiet: 6 },
} satisfies UtxoNetwork

/**
 * The block intervals are chosen so that the confirmations of the asset registry take less than
 * twenty seconds.
 */
export const UTXO_NETWORKS: readonly UtxoNetwork[] = [
  BITCOIN,
  {
    ...BITCOIN,
    code: 'LTC',
    path: '/ltc',
    subversion: '/LitecoinCore:0.21.4/',
    version: 210400,
    genesis: Buffer.from(
      '010000000000000000000000000000000000000000000000000000000000000000000000d9ced4ed1130f7b7faad9be25323ffafa33232a17c3edf6cfd97bee6' +
        'bafbdd97dae5494dffff7f20000000000101000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4804ffff001d' +
        '0104404e592054696d65732030352f4f63742f32303131205374657665204a6f62732c204170706c65e280997320566973696f6e6172792c2044696573206174' +
        '203536ffffffff0100f2052a010000004341040184710fa689ad5023690c80f3a49c8f13f8d45b8c857fbcbc8bc4a8e4d3eb4b10f4d4604fa08dce601aaf0f47' +
        '0216fe1b51850b4acf21b179c45070ac7b03a9ac00000000',
      'hex',
    ),
    address: { hrp: 'rltc', p2pkh: 111, p2sh: 58, cashaddr: null },
    // Litecoin Core's default (`-mempoolreplacement=0`).
    replacement: 'none',
    maxMoney: 84_000_000n * COIN,
    dustRate: 30n,
    sizeMin: 82,
    versionMax: 2,
    blockVerbosity: 2,
    extensionBlocks: true,
    blocks: { busyMs: 1000, idleMs: 30_000, quiet: 16 },
  },
  {
    ...BITCOIN,
    code: 'DASH',
    path: '/dash',
    subversion: '/Dash Core:22.1.3/',
    version: 220103,
    // The content of the real genesis block. Its hash differs, because this ledger hashes headers
    // as Bitcoin does and not with X11.
    genesis: Buffer.from(
      '010000000000000000000000000000000000000000000000000000000000000000000000c762a6567f3cc092f0684bb62b7e00a84890b990f07cc71a6bb58d64' +
        'b98e02e0b9968054ffff7f20ffba10000101000000010000000000000000000000000000000000000000000000000000000000000000ffffffff6204ffff001d' +
        '01044c5957697265642030392f4a616e2f3230313420546865204772616e64204578706572696d656e7420476f6573204c6976653a204f76657273746f636b2e' +
        '636f6d204973204e6f7720416363657074696e6720426974636f696e73ffffffff0100f2052a010000004341040184710fa689ad5023690c80f3a49c8f13f8d4' +
        '5b8c857fbcbc8bc4a8e4d3eb4b10f4d4604fa08dce601aaf0f470216fe1b51850b4acf21b179c45070ac7b03a9ac00000000',
      'hex',
    ),
    address: { hrp: null, p2pkh: 140, p2sh: 19, cashaddr: null },
    segwit: false,
    replacement: 'none',
    sizeMin: 83,
    blockVerbosity: 2,
    chainLocks: true,
    specialTransactions: true,
    blocks: { busyMs: 1500, idleMs: 30_000, quiet: 14 },
  },
  {
    ...BITCOIN,
    code: 'DOGE',
    path: '/doge',
    subversion: '/Shibetoshi:1.14.9/',
    version: 1_140_900,
    genesis: Buffer.from(
      '010000000000000000000000000000000000000000000000000000000000000000000000696ad20e2dd4365c7459b4a4a5af743d5e92c6da3229e6532cd605f6' +
        '533f2a5bdae5494dffff7f20020000000101000000010000000000000000000000000000000000000000000000000000000000000000ffffffff1004ffff001d' +
        '0104084e696e746f6e646fffffffff010058850c020000004341040184710fa689ad5023690c80f3a49c8f13f8d45b8c857fbcbc8bc4a8e4d3eb4b10f4d4604f' +
        'a08dce601aaf0f470216fe1b51850b4acf21b179c45070ac7b03a9ac00000000',
      'hex',
    ),
    address: { hrp: null, p2pkh: 111, p2sh: 196, cashaddr: null },
    segwit: false,
    replacement: 'none',
    maturity: 60,
    subsidy: 500_000n * COIN,
    maxMoney: 10_000_000_000n * COIN,
    relayRate: 100n,
    // Its nodes use a fixed dust limit and no rate.
    dustRate: 0n,
    dustFloor: COIN / 1000n,
    sizeMin: 0,
    versionMax: 2,
    fees: { targets: [], floor: -1n, method: 'estimatesmartfee' },
    maxFeeRate: 100n * COIN,
    blockVerbosity: 1,
    blocks: { busyMs: 400, idleMs: 30_000, quiet: 46 },
  },
  {
    ...BITCOIN,
    code: 'BCH',
    path: '/bch',
    subversion: '/Bitcoin Cash Node:28.0.1(EB32.0)/',
    version: 28_000_100,
    address: { hrp: null, p2pkh: 111, p2sh: 196, cashaddr: 'bchreg' },
    segwit: false,
    forkId: true,
    replacement: 'none',
    versionMax: 2,
    fees: { targets: [], floor: 1n, method: 'estimatefee' },
    blockVerbosity: 2,
    cashTokens: true,
    blocks: { busyMs: 1000, idleMs: 30_000, quiet: 19 },
  },
]

export const BTC: UtxoNetwork = UTXO_NETWORKS[0]!
