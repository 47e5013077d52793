# Runs every file of tests.
status=0
for file in tests/*.sh; do
  if sh "$file"; then echo "PASSED $file"; else echo "FAILED $file"; status=1; fi
done
exit $status
