// Builds the documentation site. The first run installs the required tools
// (docs/package-lock.json).
//   npm run docs                serves the site on http://127.0.0.1:8090 until Ctrl-C
//   npm run docs -- --build     only builds it, into docs/.vitepress/dist; a broken link fails
//   npm run docs -- --watch     shows changes as they are saved
//   PORT=8091 npm run docs      uses another port
import { join } from 'node:path'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { root, underPinnedNode } from './pinned-node.mjs'
import { answerHelp } from './script-help.mjs'
import { installTools } from './tooling.mjs'

answerHelp(import.meta.url)
await underPinnedNode(fileURLToPath(import.meta.url))
const flags = process.argv.slice(2)
const unknown = flags.find((flag) => flag !== '--build' && flag !== '--watch')
const port = Number(process.env.PORT ?? 8090)
if (unknown || !Number.isInteger(port) || port < 1 || port > 65_535) {
  console.error(
    unknown
      ? `Unknown option ${unknown}. Usage: npm run docs -- [--build | --watch]`
      : `PORT: must be a port number, not ${process.env.PORT}`,
  )
  process.exit(1)
}
const site = join(root, 'docs')
installTools(site)
// Resolved from the folder that contains it.
const { build, createServer, serve } = await import(
  pathToFileURL(createRequire(join(site, 'package.json')).resolve('vitepress')).href
)
if (flags.includes('--watch')) {
  const server = await createServer(site, { host: '127.0.0.1', port, strictPort: true })
  await server.listen()
  console.log(`documentation http://127.0.0.1:${port}/docs/`)
} else {
  await build(site)
  if (!flags.includes('--build')) {
    await serve({ root: site, port })
    console.log(`documentation http://127.0.0.1:${port}/docs/`)
  }
}
