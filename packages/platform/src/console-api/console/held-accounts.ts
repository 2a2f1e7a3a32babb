import type { AccountKind } from '../../core/ledger/post.ts'
import { WALLET_PARTS } from '../../custody/statements/accounts.ts'

/** The ledger accounts of a wallet that together are its total balance. */
export const HELD_ACCOUNTS = Object.keys(WALLET_PARTS) as readonly AccountKind[]
