// Copies the template of a chain family under a new name. docs/adding-a-chain.md explains what is
// copied, and the next steps.
//   npx node scripts/new-family.mjs NAME
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const [name = '', ...more] = process.argv.slice(2)

/** Folders of the template; `*` stands for the name. */
const PLACES = [
  'packages/chains/src/*',
  'packages/platform/src/core/families/*',
  'packages/platform/testing/*',
]
const placeOf = (place, word) => join(root, place.replace('*', word))
const spellings = (word) => [word, word[0].toUpperCase() + word.slice(1), word.toUpperCase()]

function refuse(reason) {
  console.error(reason)
  process.exit(1)
}

if (!/^[a-z][a-z0-9]*$/.test(name) || more.length > 0)
  refuse('Usage: npx node scripts/new-family.mjs NAME   (a word of lower-case letters and digits)')
const there = PLACES.find((place) => existsSync(placeOf(place, name)))
if (there) refuse(`${there.replace('*', name)} is there already`)

function replaceNames(file) {
  const renamed = spellings('template').reduce(
    (text, word, at) => text.replaceAll(word, spellings(name)[at]),
    readFileSync(file, 'utf8'),
  )
  writeFileSync(file, renamed)
}

for (const place of PLACES) {
  const target = placeOf(place, name)
  cpSync(placeOf(place, 'template'), target, { recursive: true })
  for (const file of readdirSync(target)) {
    const renamed = join(target, file.replace('template', name))
    renameSync(join(target, file), renamed)
    replaceNames(renamed)
  }
  console.log(place.replace('*', name))
}
// Without a network of the family it cannot run. With this name it is a test.
const transfer = placeOf('packages/platform/testing/*/transfer.ts', name)
renameSync(transfer, transfer.replace('.ts', '.test.ts'))
// A shorter or longer name changes where lines break.
const { status } = spawnSync(
  process.execPath,
  ['node_modules/oxfmt/bin/oxfmt', ...PLACES.map((place) => place.replace('*', name))],
  { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] },
)
if (status !== 0) refuse('oxfmt did not format the copy')
