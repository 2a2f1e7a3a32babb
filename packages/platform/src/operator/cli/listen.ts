import { printLines } from '@custody/chains/terminal'
import { listen } from '../listen.ts'
import type { Run } from './typed.ts'

/** Until Ctrl-C, or until whoever reads the lines has gone. */
export const listenRun: Run = async ({ home, values }) => {
  const ending = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ending.abort())
  process.stdout.on('error', () => ending.abort())
  return listen(home, values, printLines, ending.signal)
}
