import type * as Library from 'bitcoinjs-lib'
import { lazily } from '../lazy.ts'

export const library = lazily<typeof Library>('bitcoinjs-lib')
