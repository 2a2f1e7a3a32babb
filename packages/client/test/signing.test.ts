import { signingTests } from './signing.ts'

signingTests([
  { name: 'curl with openssl', probe: ['openssl', 'version'], command: (file) => ['bash', file('sign.sh')] },
  {
    name: 'Python', probe: ['python3', '-c', 'import cryptography'], command: (file) => ['python3', file('sign.py')],
  },
  { name: 'PHP', probe: ['php', '-r', 'exit(extension_loaded("openssl") ? 0 : 1);'], command: (file) => ['php', file('sign.php')] },
  { name: 'Ruby', probe: ['ruby', '-e', 'require "openssl"; require "base64"'], command: (file) => ['ruby', file('sign.rb')] },
])
