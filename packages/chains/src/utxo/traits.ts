import { CHANGE_INDEX } from '../derivation.ts'
import { noSurcharge, type Refusals, type Traits } from '../traits.ts'

/** Size of the largest change output in vbytes, which a wallet saves by leaving change out. */
const CHANGE_VBYTES = 43n

/** Messages of Bitcoin Core and its derivatives. */
const REFUSALS: Refusals = [
  ['known', /txn-already-(?:in-mempool|known)|already in (?:block chain|utxo set)/i],
  ['node', /too-long-mempool-chain|max-fee-exceeded|absurdly-high-fee|fee exceeds maximum/i],
  [
    'price',
    /min relay fee not met|mempool min fee not met|insufficient (?:fee|priority)|mempool full/i,
  ],
  [
    'conflict',
    /txn-mempool-conflict|missing[- ]?inputs|bad-txns-inputs-(?:missingorspent|spent)|bad-txns-spends-conflicting-tx|tx-txlock-conflict/i,
  ],
  ['expired', /non-final|non-BIP68-final/i],
]

/** Half of what a transfer may spend, so that its size stays far below the limit of relays. */
export const CONSOLIDATION = { index: CHANGE_INDEX, inputsLeast: 10, inputsMost: 200 } as const

export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'spendable',
  firstNonce: null,
  nothingExcludes: false,
  expiry: null,
  cancellation: {
    index: CHANGE_INDEX,
    moves: 'everything',
    // BIP125 rule 4: the replacement pays for its own relay.
    increment: (network, { vsize }) => BigInt(vsize ?? 0) * BigInt(network.utxo?.min_fee_rate ?? 1),
  },
  consolidation: CONSOLIDATION,
  feePayer: false,
  staking: false,
  contractPayments: 'listed',
  feeRateDecimals: 3,
  leastRate: (network) => BigInt(network.utxo?.min_fee_rate ?? 1) * 1000n,
  // The smallest transfer has 110 vbytes.
  leastFee: (rate) => (rate * 110n) / 1000n,
  // Without change, the maximum increases by the cost of a change output and its dust limit,
  // because that much cannot be returned.
  feeMostAt: (network, { vsize, change }, rate, scale) => {
    const surplus =
      change === null ? CHANGE_VBYTES * rate + BigInt(network.utxo?.dust ?? 0) * scale : 0n
    return BigInt(vsize as number) * rate + surplus
  },
  refusals: REFUSALS,
  surchargeMost: noSurcharge,
}
