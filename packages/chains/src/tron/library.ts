import type Library from 'protobufjs'
import { lazily } from '../lazy.ts'

export const library = lazily<typeof Library>('protobufjs')
