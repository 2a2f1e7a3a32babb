import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Prints the comment at the beginning of a script and exits, if the arguments contain --help or -h.
 * Runs before anything else of the script.
 * @param url `import.meta.url` of the script
 */
export function answerHelp(url) {
  if (!process.argv.slice(2).some((word) => word === '--help' || word === '-h')) return
  const lines = readFileSync(fileURLToPath(url), 'utf8').split('\n')
  const end = lines.findIndex((line) => !line.startsWith('//'))
  console.log(
    lines
      .slice(0, end)
      .map((line) => line.replace(/^\/\/ ?/, ''))
      .join('\n'),
  )
  process.exit(0)
}
