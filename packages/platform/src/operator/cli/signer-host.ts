import '../../../../../scripts/compile-cache.mjs'
import { existsSync, readFileSync } from 'node:fs'
import { dataDirOf } from '../../data-dir.ts'

/** `custody …` of the signer's bundle: the commands about the node of this host, by its home. */
const [{ main }, { SIGNER_COMMANDS }, { elsewhere }] = await Promise.all([
  import('./program.ts'),
  import('./signer-commands.ts'),
  import('./programs.ts'),
])

/**
 * Here is no platform to ask and no three nodes to choose from: each command needs the home of the
 * node.
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
 * First words of the platform's commands, which the making of the bundle wrote down: an error that
 * says where they are.
 */
const list = new URL('../../../../../bin/platform-commands.json', import.meta.url)
const others = existsSync(list) ? (JSON.parse(readFileSync(list, 'utf8')) as string[]) : []

await main(process.argv.slice(2), dataDirOf(process.env), commands, ([first = '', second = '']) => {
  const name =
    others.find((command) => command === first) ??
    others.find((command) => command === `${first} ${second}`)
  if (name !== undefined) throw elsewhere(name, 'platform')
})
