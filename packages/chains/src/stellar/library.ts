import { createRequire } from 'node:module'
import type * as Library from '@stellar/stellar-base'

const require = createRequire(import.meta.url)
let loaded: typeof Library | undefined

/** Loaded when a Stellar address or transaction is first met: it would cost every process 28 MB. */
export const library = (): typeof Library => (loaded ??= require('@stellar/stellar-base') as typeof Library)
