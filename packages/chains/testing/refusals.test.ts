import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  loadRegistry,
  refusalKind,
  traitsOf,
  type Network,
  type RefusalKind,
} from '../src/index.ts'

/**
 * Tests of the messages by which nodes refuse a broadcast: those of the clients' sources, and those
 * observed at real nodes.
 */
const registry = loadRegistry('mainnet')
const REFUSED: Record<string, [message: string, kind: RefusalKind | null][]> = {
  ETH: [
    ['already known', 'known'],
    ['AlreadyKnown', 'known'],
    ['Known transaction', 'known'],
    ['intrinsic gas too low: gas 20000, minimum needed 21000', 'gas'],
    ['intrinsic gas exceeds gas limit', 'gas'],
    ['nonce too low: next nonce 4, tx nonce 3', 'conflict'],
    ['nonce too high', 'conflict'],
    ['OldNonce, Current nonce: 5, nonce of rejected tx: 2', 'conflict'],
    ['replacement transaction underpriced', 'price'],
    ['transaction underpriced: tip needed 1, tip permitted 0', 'price'],
    ['transaction gas price below minimum: gas tip cap 2, minimum needed 25000000000', 'price'],
    [
      'max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, baseFee: 400',
      'price',
    ],
    ['FeeTooLow, EffectivePriorityFeePerGas too low 1 < 2', 'price'],
    ['FeeTooLowToCompete', 'price'],
    ['Gas price below configured minimum gas price', 'price'],
    ['insufficient fee: insufficient fee got: 1 required: 2', 'price'],
    ['insufficient funds for gas * price + value: address 0x1 have 0 want 2', 'funds'],
    ['InsufficientFunds, Account balance: 0, cumulative cost: 2', 'funds'],
    ['Upfront cost exceeds account balance', 'funds'],
    ['tx fee (2.00 ether) exceeds the configured cap (1.00 ether)', 'node'],
    ['transaction gas limit too high (cap: 16777216, tx: 16777217)', 'node'],
    ['txpool is full', 'node'],
    ['invalid sender', null],
  ],
  BTC: [
    ['txn-already-in-mempool', 'known'],
    ['Transaction already in block chain', 'known'],
    ['Transaction outputs already in utxo set', 'known'],
    ['min relay fee not met, 100 < 141', 'price'],
    ['mempool min fee not met, 141 < 400', 'price'],
    ['insufficient fee, rejecting replacement 00; new feerate 1 <= old feerate 2', 'price'],
    ['mempool full', 'price'],
    ['txn-mempool-conflict', 'conflict'],
    ['bad-txns-inputs-missingorspent', 'conflict'],
    ['Missing inputs', 'conflict'],
    ['too-long-mempool-chain, too many unconfirmed ancestors [limit: 25]', 'node'],
    ['Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)', 'node'],
    ['max-fee-exceeded', 'node'],
    ['non-final', 'expired'],
    ['dust', null],
    ['mandatory-script-verify-flag-failed', null],
  ],
  TRX: [
    ['DUP_TRANSACTION_ERROR: Dup transaction.', 'known'],
    ['TRANSACTION_EXPIRATION_ERROR: Transaction expired', 'expired'],
    ['TAPOS_ERROR: Tapos failed, different block hash.', 'expired'],
    ['BANDWITH_ERROR: Account resource insufficient error.', 'funds'],
    [
      'CONTRACT_VALIDATE_ERROR: Contract validate error : Validate TransferContract error, balance is not sufficient.',
      'funds',
    ],
    ['SIGERROR: Validate signature error: miss sig or contract', null],
  ],
  XRP: [
    ['telINSUF_FEE_P: Fee insufficient.', 'price'],
    ['telCAN_NOT_QUEUE_FEE: Can not queue at this time: fee insufficient.', 'price'],
    ['telCAN_NOT_QUEUE_FULL: Can not queue at this time: queue is full.', 'node'],
    ['tefPAST_SEQ: This sequence number has already passed.', 'conflict'],
    ['terPRE_SEQ: Missing/inapplicable prior transaction.', 'conflict'],
    ['tefMAX_LEDGER: Ledger sequence too high.', 'expired'],
    ['tecUNFUNDED_PAYMENT: Insufficient XRP balance to send.', 'funds'],
    ['tefALREADY: The exact transaction was already in this ledger.', 'known'],
    ['temMALFORMED: Malformed transaction.', null],
  ],
  XLM: [
    ['txInsufficientFee', 'price'],
    ['txBadSeq', 'conflict'],
    ['txInsufficientBalance', 'funds'],
    ['txTooLate', 'expired'],
    ['txFailed', null],
  ],
  ADA: [
    ['… (FeeTooSmallUTxO (Coin 170000) (Coin 160000)) …', 'price'],
    ['… (BadInputsUTxO (fromList [TxIn …])) …', 'conflict'],
    ['… (OutsideValidityIntervalUTxO (ValidityInterval …) (SlotNo 5)) …', 'expired'],
    ['Mempool is full, please try again later', 'node'],
    ['… (ValueNotConservedUTxO …) …', null],
  ],
  SOL: [
    ['Transaction simulation failed: This transaction has already been processed', 'known'],
    ['Transaction simulation failed: Blockhash not found', 'expired'],
    [
      'Transaction simulation failed: Attempt to debit an account but found no record of a prior credit.',
      'funds',
    ],
    ['Transfer: insufficient lamports 1, need 2', 'funds'],
    ['Node is behind by 60 slots', 'node'],
    ['Transaction signature verification failure', null],
  ],
}

for (const [code, cases] of Object.entries(REFUSED))
  test(`${code}: each refusal of a broadcast has its kind`, () => {
    const network = registry.network(code) as Network
    assert.deepEqual(
      cases.map(([message]) => [message, refusalKind(network, message)]),
      cases,
    )
  })

test('each kind in the table of a family has a case', () => {
  const kinds = (code: string) => new Set(REFUSED[code]?.map(([, kind]) => kind))
  for (const network of registry.networks) {
    const code = Object.keys(REFUSED).find(
      (each) => registry.network(each)?.family === network.family,
    )
    assert.ok(code !== undefined, network.family)
    for (const [kind] of traitsOf(network).refusals)
      assert.ok(kinds(code).has(kind), `${network.family}: ${kind}`)
  }
})
