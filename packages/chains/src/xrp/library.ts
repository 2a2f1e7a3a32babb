import type * as Library from 'ripple-binary-codec'
import { lazily } from '../lazy.ts'

export const library = lazily<typeof Library>('ripple-binary-codec')
