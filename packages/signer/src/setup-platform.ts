import { printError, printLines } from '@custody/chains/terminal'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { checkHome, modeOf, runPlatformSetup } from './set-up/command.ts'
import { SetupError } from './set-up/files.ts'

/**
 * `custody setup` on a platform host: creates the identity by which the signer nodes recognise the
 * platform, and checks a set-up. It imports no code that creates or opens a key of a signer node,
 * so that a platform's bundle does not contain it.
 */
const USAGE = [
  'Usage: custody setup OPTIONS',
  '',
  'Create the keys of the platform and write its public half (--out; default: standard output):',
  '  --as platform --mode MODE --home FOLDER [--out FILE]',
  'Complete the set-up with the public halves of the three signer nodes:',
  '  --as platform --mode MODE --home FOLDER --peers FILE,FILE,FILE',
  'Query the nodes and check that the set-up matches; exit 1 if not:',
  '  --check --home FOLDER',
  '',
  'Set up signer nodes and recovery keys on their own hosts, with the signer bundle.',
] as const

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      as: { type: 'string' },
      home: { type: 'string' },
      mode: { type: 'string' },
      peers: { type: 'string' },
      out: { type: 'string' },
      check: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
      // Option of a signer node, which is accepted here so that the error below can explain it.
      node: { type: 'string' },
      ports: { type: 'string' },
      port: { type: 'string' },
      host: { type: 'string' },
      listen: { type: 'string' },
      platform: { type: 'string' },
      recovery: { type: 'string' },
      restore: { type: 'string' },
      'recovery-secret-file': { type: 'string' },
      print: { type: 'string' },
      kek: { type: 'string' },
      'repair-clock': { type: 'boolean' },
    },
  })
  if (values.help) return printLines(USAGE)
  if (!values.check && values.as !== 'platform') {
    throw new SetupError(
      'this bundle sets up the platform alone (--as platform): for a signer node or a recovery key run custody setup ' +
        'on its own host, with the signer bundle',
      ...USAGE,
    )
  }
  if (!values.home) throw new SetupError(...USAGE)
  const home = resolve(values.home)
  if (values.check) return checkHome(home)
  if (values.mode === undefined)
    throw new SetupError('--mode is required: mainnet, regtest or local')
  return runPlatformSetup({ home, mode: modeOf(values.mode), peers: values.peers, out: values.out })
}

await main().catch((error: unknown) => {
  printError('setup', error)
  process.exitCode = 1
})
