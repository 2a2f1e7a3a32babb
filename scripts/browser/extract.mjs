// Extracts the browser of this folder's packages, with the libraries and fonts that it brings, into
// the folder that is the first argument. The second is the folder's name when it is complete.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [folder, target] = process.argv.slice(2)
// The package extracts into the temporary folder, and its libraries only where it recognizes a host
// without them.
process.env.TMPDIR = folder
process.env.AWS_EXECUTION_ENV = 'nodejs24.x'
const { default: chromium } = await import('@sparticuz/chromium')
await chromium.executablePath()
// Instead of the file of the package, which names folders of the host that it recognizes.
writeFileSync(
  join(folder, 'fonts', 'fonts.conf'),
  `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(target, 'fonts')}</dir>
  <cachedir>${join(target, 'fonts-cache')}</cachedir>
</fontconfig>
`,
)
