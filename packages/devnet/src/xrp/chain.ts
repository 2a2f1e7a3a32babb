import { secp256k1 } from '@noble/curves/secp256k1.js'
import { parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { LedgerChain } from '../ledger-chain.ts'
import { OfLedgers } from '../ledger-local.ts'
import { REAL_TIME, type Timing } from '../timing.ts'
import {
  decodeAccount,
  readTransaction,
  signingHash,
  writeTransaction,
  type Fields,
  type XrpTransaction,
} from './codec.ts'
import {
  BASE_FEE,
  FAUCET,
  FAUCET_KEY,
  FAUCET_PUBLIC,
  PARTIAL_PAYMENT,
  xrpRules,
  type Account,
  type Outcome,
} from './rules.ts'

const DECIMALS = 6
const TAG_MAX = 0xffff_ffff

/** The local XRP Ledger: a ledger of our own with rippled's protocol. */
export class XrpChain extends OfLedgers<Account, XrpTransaction, Outcome> {
  static async open(home: string, timing: Timing = REAL_TIME): Promise<XrpChain> {
    return new XrpChain(LedgerChain.open(xrpRules, home, timing))
  }

  /**
   * Pays from the faucet.
   * @param delivered if given, a partial payment that names `amount` and delivers only this
   */
  fund(address: unknown, amount: unknown, tag: unknown, delivered: unknown): string {
    if (typeof address !== 'string' || !decodeAccount(address)) {
      throw new RequestError(`address ${JSON.stringify(address)} is not an address of XRP`)
    }
    if (
      tag !== null &&
      tag !== undefined &&
      (!/^(0|[1-9]\d{0,9})$/.test(String(tag)) || Number(tag) > TAG_MAX)
    ) {
      throw new RequestError(`tag ${JSON.stringify(tag)} is not a destination tag`)
    }
    const drops = parseAmount(amount, DECIMALS)
    const fields: Fields = {
      TransactionType: 'Payment',
      Flags: 0,
      Account: FAUCET,
      Destination: address,
      Amount: drops.toString(),
      Fee: BASE_FEE.toString(),
      Sequence: this.ledgers.open.get(FAUCET)!.sequence,
      SigningPubKey: FAUCET_PUBLIC.toString('hex').toUpperCase(),
      ...(tag === null || tag === undefined ? {} : { DestinationTag: Number(tag) }),
    }
    if (delivered !== undefined) {
      fields['Flags'] = PARTIAL_PAYMENT
      fields['SendMax'] = {
        currency: 'USD',
        issuer: FAUCET,
        value: `${parseAmount(delivered, DECIMALS)}e-6`,
      }
    }
    const signature = secp256k1.sign(signingHash(writeTransaction(fields)), FAUCET_KEY, {
      prehash: false,
      format: 'der',
    })
    const tx = readTransaction(
      writeTransaction({
        ...fields,
        TxnSignature: Buffer.from(signature).toString('hex'),
      }).toString('hex'),
    )
    const { outcome } = this.ledgers.submit(tx)
    if (outcome.result !== 'tesSUCCESS')
      throw new RequestError(`the faucet's payment was refused: ${outcome.result}`)
    this.ledgers.close()
    return tx.hash
  }
}
