console.log('placeholder: replaced by the threshold build')
