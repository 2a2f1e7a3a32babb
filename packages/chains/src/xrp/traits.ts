import { noSurcharge, type Refusals, type Traits } from '../traits.ts'

/** Result codes of rippled's `submit`. */
const REFUSALS: Refusals = [
  ['known', /^tefALREADY/],
  ['price', /^(?:telINSUF_FEE_P|telCAN_NOT_QUEUE_FEE)/],
  ['conflict', /^(?:tefPAST_SEQ|terPRE_SEQ|telCAN_NOT_QUEUE_BLOCKED)/],
  ['funds', /^(?:terINSUF_FEE_B|tecUNFUNDED|telCAN_NOT_QUEUE_BALANCE|tecINSUFFICIENT_RESERVE)/],
  ['expired', /^tefMAX_LEDGER/],
  ['node', /^(?:telCAN_NOT_QUEUE|tooBusy)/],
]

export const traits: Traits = {
  feesFrom: 'wallet',
  deposits: 'tagged',
  firstNonce: 'chain',
  nothingExcludes: false,
  // Closing a ledger takes 3 to 4 seconds. A consensus round takes at least two seconds (rippled:
  // ledgerMIN_CLOSE). Local chains close ledgers on request.
  expiry: {
    unit: 'ledger',
    aheadMax: 100_000,
    perSecondMax: { local: 2, regtest: 2, mainnet: 0.5 },
  },
  cancellation: null,
  feePayer: false,
  staking: false,
  contractPayments: 'listed',
  feeRateDecimals: 0,
  leastRate: () => 10n,
  leastFee: (rate) => rate,
  feeMostAt: null,
  refusals: REFUSALS,
  surchargeMost: noSurcharge,
}
