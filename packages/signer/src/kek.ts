import { makeTokenKey, readKek } from '@custody/key-encryption'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { printError, printJson, printLines, TerminalError } from '@custody/chains/terminal'
import { checkKek } from './kek/check.ts'
import { kekContextOf } from './kek/data-dir.ts'
import { keyStatus, rotate } from './kek/rotate.ts'

/**
 * `custody kek status|rotate|check|keygen`: manages the key-encryption key of a node's data
 * directory. Prints one JSON object to standard output.
 */
const USAGE = `Usage: custody kek status --home HOME                   Print the key-encryption key that wraps the keys of HOME.
       custody kek rotate --home HOME [--kek PROVIDER]   Encrypt the key shares of a stopped node with a new key, which PROVIDER
                                                         wraps (default: the provider in use).
       custody kek check --kek PROVIDER                  Test a provider: wrap and unwrap a throw-away key.
       custody kek keygen --kek pkcs11:…,id=HEX          Create a new key-encryption key in a PKCS#11 token.
HOME: home folder of the signer node
PROVIDER: KIND:name=value,name=value or @FILE with the same as JSON (docs/production/keys.md)`

async function main(): Promise<void> {
  const {
    values,
    positionals: [command],
  } = parseArgs({
    options: {
      home: { type: 'string' },
      kek: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
    allowPositionals: true,
  })
  if (values.help) return printLines(USAGE.split('\n'))
  const settings = values.kek === undefined ? null : readKek('--kek', values.kek)
  const home = values.home === undefined ? null : resolve(values.home)
  const say = (value: unknown): void => printJson(value, 2)
  if (command === 'status' && home) say(keyStatus(home))
  else if (command === 'rotate' && home) {
    const { moved, status } = await rotate(home, settings, process.env)
    say({ moved, ...status })
  } else if (command === 'check' && settings)
    say({ ok: true, ...(await checkKek(process.cwd(), settings, process.env)) })
  else if (command === 'keygen' && settings?.kind === 'pkcs11') {
    await makeTokenKey(settings, kekContextOf(process.cwd(), process.env))
    say({ token: settings.token, key: settings.key, id: settings.id ?? null })
  } else throw new TerminalError(...USAGE.split('\n'))
}

main().catch((error: unknown) => {
  printError('kek', error)
  process.exitCode = 1
})
