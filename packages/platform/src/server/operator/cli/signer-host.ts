import '../../../../../../scripts/compile-cache.mjs'
import { existsSync, readFileSync } from 'node:fs'
import { dataDirOf } from '../../../core/data-dir.ts'

// Other users can read no file that a command creates.
process.umask(0o077)

/**
 * Entry point of `custody …` in the signer's bundle: the commands about this host's node, which is
 * selected by its data folder.
 */
const [{ main }, { SIGNER_COMMANDS }, { elsewhere }] = await Promise.all([
  import('./program.ts'),
  import('./signer-commands.ts'),
  import('./programs.ts'),
])

/**
 * There is no platform and no choice among three nodes on this host, so each command requires the
 * node's data folder.
 */
const commands = SIGNER_COMMANDS.map((definition) => {
  const options = Object.entries(definition.options ?? {}).filter(([name]) => name !== 'node N')
  return {
    ...definition,
    options: Object.fromEntries(
      options.map(([name, text]) => [name === 'home HOME' ? '!home HOME' : name, text]),
    ),
  }
})

/**
 * First words of the platform's commands, which the build of the bundle wrote. They serve for an
 * error that names the host where the command is available.
 */
const list = new URL('../../../../../../bin/platform-commands.json', import.meta.url)
const others = existsSync(list) ? (JSON.parse(readFileSync(list, 'utf8')) as string[]) : []

await main(process.argv.slice(2), dataDirOf(process.env), commands, ([first = '', second = '']) => {
  const name =
    others.find((command) => command === first) ??
    others.find((command) => command === `${first} ${second}`)
  if (name !== undefined) throw elsewhere(name, 'platform')
})
