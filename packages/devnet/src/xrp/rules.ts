import { secp256k1 } from '@noble/curves/secp256k1.js'
import { ed25519 } from '@noble/curves/ed25519.js'
import type { Ledger, Rules, Verdict, View } from '../ledger-chain.ts'
import { accountOf, issuedOf, readTransaction, sha512Half, type XrpTransaction } from './codec.ts'

export type Account = { balance: bigint; sequence: number; flags: number; owned: number }
export type Outcome = { result: string; delivered: bigint | undefined; fee: bigint }
export type XrpLedger = Ledger<XrpTransaction, Outcome>

export const NETWORK_ID = 1000
export const BASE_FEE = 10n
export const RESERVE_BASE = 1_000_000n
export const RESERVE_INCREMENT = 200_000n
export const TOTAL = 10n ** 17n

/**
 * Key of the seed `masterpassphrase`, which every stand-alone server uses, so the coins are
 * worthless by design.
 */
export const FAUCET_KEY = Buffer.from(
  '1acaaedece405b2a958212629e16f2eb46b153eee94cdd350fdeff52795525b7',
  'hex',
)
export const FAUCET_PUBLIC = Buffer.from(secp256k1.getPublicKey(FAUCET_KEY))
export const FAUCET = accountOf(FAUCET_PUBLIC)

const REQUIRE_TAG = 0x0002_0000
const DEPOSIT_AUTH = 0x0100_0000
export const PARTIAL_PAYMENT = 0x0002_0000
const FULLY_CANONICAL = 0x8000_0000
const PAYMENT_FLAGS = 0x0001_0000 | PARTIAL_PAYMENT | 0x0004_0000
/** asfRequireDest, asfDepositAuth: the account flags that can be set here. */
const SETTABLE: Record<number, number> = { 1: REQUIRE_TAG, 9: DEPOSIT_AUTH }

export const MESSAGES: Record<string, string> = {
  tesSUCCESS: 'The transaction was applied. Only final in a validated ledger.',
  tecUNFUNDED_PAYMENT: 'Insufficient XRP balance to send.',
  tecNO_DST_INSUF_XRP: 'Destination does not exist. Too little XRP sent to create it.',
  tecNO_DST: 'Destination does not exist.',
  tecDST_TAG_NEEDED: 'A destination tag is required.',
  tecNO_PERMISSION: 'No permission to perform requested operation.',
  tefPAST_SEQ: 'This sequence number has already passed.',
  tefMAX_LEDGER: 'Ledger sequence too high.',
  tefALREADY: 'The exact transaction was already in this ledger.',
  tefBAD_AUTH: "Transaction's public key is not authorized.",
  terPRE_SEQ: 'Missing/inapplicable prior transaction.',
  terNO_ACCOUNT: 'The source account does not exist.',
  terINSUF_FEE_B: "Account balance can't pay fee.",
  telINSUF_FEE_P: 'Fee insufficient.',
  telNETWORK_ID_MAKES_TX_NON_CANONICAL:
    'Transactions submitted to this network MUST NOT include a NetworkID.',
  telCAN_NOT_QUEUE_FULL: 'Can not queue at this time: Queue is full.',
  temBAD_AMOUNT: 'Malformed: Bad amount.',
  temBAD_FEE: 'Invalid fee, negative or not XRP.',
  temBAD_SEQUENCE: 'Malformed: Sequence is not in the past.',
  temDST_NEEDED: 'Destination not specified.',
  temREDUNDANT: 'The transaction is redundant.',
  temINVALID_FLAG: 'The transaction has an invalid flag.',
  temBAD_SEND_XRP_MAX: 'Malformed: Send max is not allowed for XRP to XRP.',
  temBAD_SEND_XRP_PARTIAL: 'Malformed: Partial payment is not allowed for XRP to XRP.',
  temDISABLED: 'The transaction requires logic that is currently disabled.',
}

/**
 * Checks a signature. Undefined: it is the one canonical signature of the key that the transaction
 * names.
 */
export function signatureFault({ fields, signingBytes }: XrpTransaction): string | undefined {
  try {
    const key = Buffer.from(fields['SigningPubKey'] as string, 'hex')
    const signature = Buffer.from((fields['TxnSignature'] ?? '') as string, 'hex')
    const good =
      key[0] === 0xed
        ? ed25519.verify(signature, signingBytes, key.subarray(1))
        : secp256k1.verify(signature, sha512Half(signingBytes), key, {
            prehash: false,
            lowS: true,
            format: 'der',
          })
    return good ? undefined : 'Invalid signature.'
  } catch {
    return 'Invalid signature.'
  }
}

/** Checks the transaction independently of the ledger. */
function preflight({ fields }: XrpTransaction): string | undefined {
  const flags = (fields['Flags'] ?? 0) as number
  if (fields['NetworkID'] !== undefined) return 'telNETWORK_ID_MAKES_TX_NON_CANONICAL'
  if (typeof fields['Fee'] !== 'string' || BigInt(fields['Fee']) < 0n) return 'temBAD_FEE'
  if (fields['TicketSequence'] !== undefined || fields['AccountTxnID'] !== undefined)
    return 'temDISABLED'
  if (fields['Sequence'] === 0) return 'temBAD_SEQUENCE'
  if (fields['TransactionType'] === 'AccountSet') return undefined
  if ((flags & ~(FULLY_CANONICAL | PAYMENT_FLAGS)) !== 0) return 'temINVALID_FLAG'
  if (fields['Destination'] === undefined) return 'temDST_NEEDED'
  const amount = fields['Amount']
  if (amount === undefined) return 'temBAD_AMOUNT'
  if (typeof amount !== 'string') return 'temDISABLED'
  if (BigInt(amount) <= 0n) return 'temBAD_AMOUNT'
  // The only payment through an exchange is the faucet's own, which demonstrates a partial payment.
  if (issuedOf(fields['SendMax']) && fields['Account'] === FAUCET) return undefined
  if (fields['SendMax'] !== undefined) return 'temBAD_SEND_XRP_MAX'
  if ((flags & PARTIAL_PAYMENT) !== 0) return 'temBAD_SEND_XRP_PARTIAL'
  if (fields['Account'] === fields['Destination']) return 'temREDUNDANT'
  return undefined
}

function verdictOf(result: string): Verdict {
  if (result === 'tesSUCCESS' || result.startsWith('tec')) return 'in'
  return result === 'terPRE_SEQ' ? 'later' : 'never'
}

/**
 * Applies a transaction with a server's order of checks: form, account and sequence, fee, then the
 * payment itself.
 */
function apply(
  view: View<Account>,
  tx: XrpTransaction,
  { index }: { index: number },
): { verdict: Verdict; outcome: Outcome } {
  const { fields } = tx
  const done = (result: string, fee = 0n, delivered?: bigint) => ({
    verdict: verdictOf(result),
    outcome: { result, delivered, fee },
  })
  const malformed = preflight(tx)
  if (malformed) return done(malformed)
  const from = fields['Account'] as string
  const source = view.get(from)
  if (!source) return done('terNO_ACCOUNT')
  const sequence = fields['Sequence'] as number
  const last = fields['LastLedgerSequence'] as number | undefined
  if (sequence < source.sequence) return done('tefPAST_SEQ')
  if (last !== undefined && last < index) return done('tefMAX_LEDGER')
  if (sequence > source.sequence) return done('terPRE_SEQ')
  if (accountOf(Buffer.from(fields['SigningPubKey'] as string, 'hex')) !== from)
    return done('tefBAD_AUTH')
  const fee = BigInt(fields['Fee'] as string)
  if (fee < BASE_FEE) return done('telINSUF_FEE_P')
  if (source.balance < fee) return done('terINSUF_FEE_B')
  const paid = { ...source, balance: source.balance - fee, sequence: sequence + 1 }
  const claim = (result: string) => {
    view.set(from, paid)
    return done(result, fee)
  }
  if (fields['TransactionType'] === 'AccountSet') {
    const set = SETTABLE[(fields['SetFlag'] ?? 0) as number] ?? 0
    const clear = SETTABLE[(fields['ClearFlag'] ?? 0) as number] ?? 0
    view.set(from, { ...paid, flags: (paid.flags | set) & ~clear })
    return done('tesSUCCESS', fee)
  }
  const to = fields['Destination'] as string
  const amount = deliveredOf(tx)
  const target = view.get(to)
  const refusal = refusalOf(target, amount, fields['DestinationTag'] !== undefined)
  if (refusal) return claim(refusal)
  const reserve = RESERVE_BASE + BigInt(source.owned) * RESERVE_INCREMENT
  if (source.balance < amount + (reserve > fee ? reserve : fee)) return claim('tecUNFUNDED_PAYMENT')
  view.set(from, { ...paid, balance: paid.balance - amount })
  const now = view.get(to)
  view.set(
    to,
    now
      ? { ...now, balance: now.balance + amount }
      : { balance: amount, sequence: index, flags: 0, owned: 0 },
  )
  return done('tesSUCCESS', fee, amount)
}

/** Returns why an account does not accept a payment; undefined if it does. */
function refusalOf(
  target: Account | undefined,
  amount: bigint,
  hasTag: boolean,
): string | undefined {
  if (!target) return amount < RESERVE_BASE ? 'tecNO_DST_INSUF_XRP' : undefined
  if ((target.flags & REQUIRE_TAG) !== 0 && !hasTag) return 'tecDST_TAG_NEEDED'
  return (target.flags & DEPOSIT_AUTH) === 0 ? undefined : 'tecNO_PERMISSION'
}

/**
 * Returns the delivered amount. A partial payment delivers what its SendMax buys, one to one,
 * however large its Amount is.
 */
function deliveredOf({ fields }: XrpTransaction): bigint {
  const amount = BigInt(fields['Amount'] as string)
  const most = issuedOf(fields['SendMax'])
  if (!most) return amount
  const [mantissa, exponent] = most.value.split('e').map(Number) as [number, number]
  const buys = BigInt(Math.round(mantissa * 10 ** (exponent + 6)))
  return buys < amount ? buys : amount
}

export const xrpRules: Rules<Account, XrpTransaction, Outcome> = {
  code: 'XRP',
  genesisTime: 1_700_000_000,
  genesis: () => new Map([[FAUCET, { balance: TOTAL, sequence: 1, flags: 0, owned: 0 }]]),
  read: readTransaction,
  apply,
  hash: ({ index, time, parent, transactions }) => {
    const header = JSON.stringify([
      NETWORK_ID,
      index,
      time,
      parent,
      transactions.map(({ tx, outcome }) => [
        tx.hash,
        outcome.result,
        outcome.delivered?.toString() ?? null,
      ]),
    ])
    return sha512Half(Buffer.from('LWR\0'), Buffer.from(header)).toString('hex').toUpperCase()
  },
}
