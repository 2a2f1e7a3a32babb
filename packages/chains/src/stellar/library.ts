import type * as Library from '@stellar/stellar-base'
import { lazily } from '../lazy.ts'

export const library = lazily<typeof Library>('@stellar/stellar-base')
