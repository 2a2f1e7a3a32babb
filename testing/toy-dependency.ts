import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './tree.ts'

const HOOKS = ['preinstall', 'install', 'postinstall', 'prepare']

/**
 * Installs a dependency with install scripts in a project with the `.npmrc` of this repository. No
 * request is sent to a registry.
 * @param npm command of npm
 * @param args further arguments of `npm install` and `npm ci`
 * @returns for `npm install` and for `npm ci`, the names of the install scripts that ran
 */
export function installToy(npm: readonly string[], args: readonly string[] = []): string[][] {
  const folder = mkdtempSync(join(tmpdir(), 'custody-toy-'))
  try {
    const ran = join(folder, 'ran')
    const toy = join(folder, 'toy')
    const project = join(folder, 'project')
    for (const each of [toy, project]) mkdirSync(each)
    const scripts = Object.fromEntries(
      HOOKS.map((hook) => [
        hook,
        `node -e "require('node:fs').appendFileSync(${JSON.stringify(ran).replaceAll('"', "'")}, '${hook} ')"`,
      ]),
    )
    writeFileSync(
      join(toy, 'package.json'),
      JSON.stringify({ name: 'toy', version: '1.0.0', scripts }),
    )
    const [program, ...words] = npm as [string, ...string[]]
    const run = (cwd: string, ...more: string[]) => {
      const { status, stdout, stderr } = spawnSync(program, [...words, ...more], {
        cwd,
        encoding: 'utf8',
        // Settings of the process that runs the tests, which npm itself may have started.
        env: {
          ...Object.fromEntries(
            Object.entries(process.env).filter(([name]) => !/^npm_config_/i.test(name)),
          ),
          npm_config_offline: 'true',
          npm_config_cache: join(folder, 'cache'),
        },
      })
      assert.equal(status, 0, `${more.join(' ')}\n${stdout}${stderr}`)
    }
    run(toy, 'pack', '--ignore-scripts')
    writeFileSync(join(project, '.npmrc'), readFileSync(join(root, '.npmrc')))
    writeFileSync(
      join(project, 'package.json'),
      JSON.stringify({ private: true, dependencies: { toy: 'file:../toy/toy-1.0.0.tgz' } }),
    )
    return ['install', 'ci'].map((command) => {
      rmSync(ran, { force: true })
      run(project, command, '--no-audit', '--no-fund', ...args)
      assert.ok(existsSync(join(project, 'node_modules/toy/package.json')), 'the toy is installed')
      return existsSync(ran) ? readFileSync(ran, 'utf8').trim().split(' ') : []
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
